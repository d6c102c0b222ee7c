#include <titan/job_view.h>

namespace titan {

JobView::~JobView() = default;
RuleReport::~RuleReport() = default;

}  // namespace titan
