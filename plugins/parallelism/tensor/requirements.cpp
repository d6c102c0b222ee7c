#include "requirements.h"

#include <functional>
#include <map>
#include <numeric>

#include <titan/error.h>

namespace titan::tensor_parallel {
namespace {

/// Whether chunks of ceil(rows / degree) leave no rank without a row.
bool gives_each_a_row(int64_t rows, int64_t degree) {
  const int64_t chunk = (rows + degree - 1) / degree;
  return chunk * (degree - 1) < rows;
}

std::string joined(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

/// Problems in the order in which they were found; layers with the same problem share a line.
class Problems {
 public:
  void add(const std::string& path, const std::string& problem) {
    const auto [place, is_new] = index_.emplace(problem, lines_.size());
    if (is_new)
      lines_.push_back({path, problem, 0});
    else
      ++lines_[place->second].num_alike;
  }
  bool empty() const { return lines_.empty(); }
  std::string text() const {
    std::string text;
    for (const Line& line : lines_) {
      text += "\n  " + line.path;
      if (line.num_alike > 0) text += " (and " + std::to_string(line.num_alike) + " more)";
      text += ": " + line.problem;
    }
    return text;
  }

 private:
  struct Line {
    std::string path, problem;
    int64_t num_alike;
  };
  std::vector<Line> lines_;
  std::map<std::string, size_t> index_;
};

/// Degrees that fit the numbers of heads and rows, and problems with the present one.
class Fit {
 public:
  Fit(int64_t degree, Problems& problems) : degree_(degree), problems_(problems) {}

  void attention(const Found<nn::AttentionLayer>& found) {
    const int64_t heads = found.module->num_heads(), kv_heads = found.module->num_kv_heads();
    common_heads_ = std::gcd(common_heads_, std::gcd(heads, kv_heads));
    if (heads % degree_ == 0 && kv_heads % degree_ == 0) return;
    problems_.add(found.path, "num_heads = " + std::to_string(heads) +
                                  " and num_kv_heads = " + std::to_string(kv_heads) +
                                  " must be multiples of the degree; degrees that "
                                  "divide both: " +
                                  joined(divisors(std::gcd(heads, kv_heads))));
  }

  void vocabulary(const std::string& path, const nn::Parameter& weight) {
    const int64_t rows = weight.global_shape()[0];
    vocabularies_.push_back(rows);
    if (gives_each_a_row(rows, degree_)) return;
    problems_.add(path, "a vocabulary of " + std::to_string(rows) + " in chunks of " +
                            std::to_string((rows + degree_ - 1) / degree_) +
                            " leaves ranks without a row");
  }

  /// Empty if all numbers fit.
  std::string advice() const {
    std::vector<int64_t> fitting;
    const int64_t most = common_heads_ > 0 ? common_heads_ : degree_;
    for (int64_t degree = 1; degree <= most; ++degree) {
      bool fits = common_heads_ % degree == 0;
      for (const int64_t rows : vocabularies_) fits = fits && gives_each_a_row(rows, degree);
      if (fits && degree == degree_) return "";
      if (fits) fitting.push_back(degree);
    }
    return "\nset parallelism.tensor_parallel_degree to one of: " + joined(fitting);
  }

 private:
  static std::vector<int64_t> divisors(int64_t number) {
    std::vector<int64_t> all;
    for (int64_t n = 1; n <= number; ++n)
      if (number % n == 0) all.push_back(n);
    return all;
  }

  int64_t degree_;
  Problems& problems_;
  int64_t common_heads_ = 0;  // greatest number that divides all heads; 0 = no heads
  std::vector<int64_t> vocabularies_;
};

}  // namespace

void check_fits(const ModelLayout& layout, int64_t degree) {
  Problems problems;
  Fit fit(degree, problems);
  for (const auto& found : layout.embeddings) fit.vocabulary(found.path, found.module->weight());
  for (const auto& found : layout.attentions) fit.attention(found);
  for (const auto& found : layout.cut_attentions)
    problems.add(found.path,
                 "it attends outside of every region whose input is gathered "
                 "(Region::gathered_to_partial): it would see only a part of the sequence");
  for (const auto& found : layout.heads) fit.vocabulary(found.path, found.module->weight());
  for (const RegionLayout& region : layout.regions)
    if (region.rows.empty())
      problems.add(region.path,
                   "its output is marked as a sum over ranks, but no projection below it is cut by "
                   "columns of its weight (WeightLayout::row)");
  for (const auto& found : layout.unused_hints)
    problems.add(
        found.path,
        "its weight may be cut, but it is outside of every region whose input is gathered "
        "(Region::gathered_to_partial) or requires a vocabulary layout that only embedding "
        "and head can have");
  for (const auto& found : layout.misplaced)
    problems.add(found.path, "a region, embedding or head within another region cannot be cut");
  TITAN_CHECK(problems.empty(), config, "tensor parallelism over ", degree,
              " ranks does not fit the model:", problems.text(), fit.advice());
}

}  // namespace titan::tensor_parallel
