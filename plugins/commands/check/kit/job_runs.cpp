// What a job left in its folder, and comparisons of two jobs.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

#include <titan/checkpoints/tensor_index.h>
#include <titan/error.h>
#include <titan/files/file.h>

#include "jobs.h"

namespace titan::conformance {
namespace {

namespace fs = std::filesystem;

/// Copies a stored rectangle to its place in the whole tensor.
void place_piece(const StoredPiece& piece, const std::string& from, size_t element,
                 StoredBytes& whole) {
  const size_t dims = whole.shape.size();
  const auto row = static_cast<size_t>(dims ? piece.sizes.back() : 1) * element;
  if (row == 0 || from.empty()) return;
  for (size_t done = 0; done < from.size(); done += row) {
    // the index of this row in the piece, then its offset in the whole tensor
    size_t rest = done / row, offset = 0, stride = element;
    for (size_t d = dims; d-- > 0;) {
      size_t index = 0;
      if (d + 1 < dims) {
        index = rest % static_cast<size_t>(piece.sizes[d]);
        rest /= static_cast<size_t>(piece.sizes[d]);
      }
      offset += (index + static_cast<size_t>(piece.offsets[d])) * stride;
      stride *= static_cast<size_t>(whole.shape[d]);
    }
    std::memcpy(whole.bytes.data() + offset, from.data() + done, row);
  }
}

template <class T>
std::vector<double> numbers_of(const std::string& bytes) {
  std::vector<double> numbers(bytes.size() / sizeof(T));
  for (size_t i = 0; i < numbers.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    numbers[i] = static_cast<double>(value);
  }
  return numbers;
}

/// The elements of a tensor of floating-point numbers; of other types none.
std::vector<double> numbers_of(const StoredBytes& tensor) {
  if (tensor.dtype == "F64") return numbers_of<double>(tensor.bytes);
  if (tensor.dtype == "F32") return numbers_of<float>(tensor.bytes);
  return {};
}

std::vector<std::string> names_of(const std::map<std::string, StoredBytes>& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

}  // namespace

JobRun::JobRun(fs::path folder, ProgramRun run) : folder_(std::move(folder)), run_(std::move(run)) {
  std::istringstream text(read_text(folder_ / "metrics.jsonl"));
  for (std::string line; std::getline(text, line);) lines_.push_back(parse_json(line));
}

std::vector<double> JobRun::series(const std::string& tag) const {
  std::vector<double> values;
  for (const Value& line : lines_)
    if (const Value* value = line.find(tag))
      values.push_back(value->is_null() ? std::nan("") : value->as_number());
  return values;
}

std::vector<double> JobRun::logged_losses() const {
  // replica groups that seldom average log the loss of all groups only when they do
  const std::vector<double> of_group = series("loss_metrics/group_avg_loss");
  return of_group.empty() ? series("loss_metrics/global_avg_loss") : of_group;
}

std::vector<double> JobRun::losses() const {
  std::vector<double> losses = logged_losses();
  if (losses.empty()) throw Broken("the job in " + folder_.string() + " logged no loss");
  for (const double loss : losses)
    if (!std::isfinite(loss)) throw Broken("the job logged a loss that is not finite");
  return losses;
}

std::vector<double> JobRun::norms() const {
  return series("grad_norm");
}

std::map<std::string, StoredBytes> JobRun::tensors() const {
  fs::path newest;
  int64_t step = -1;
  for (const auto& entry : fs::directory_iterator(folder_ / "checkpoint")) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("step-") || std::stoll(name.substr(5)) <= step) continue;
    step = std::stoll(name.substr(5));
    newest = entry.path();
  }
  if (step < 0) throw Broken("the job in " + folder_.string() + " saved no checkpoint");
  const TensorIndex index = index_files(safetensors_files(newest));
  std::map<std::string, StoredBytes> tensors;
  for (const auto& [name, stored] : index.tensors) {
    StoredBytes& whole = tensors[name];
    whole.dtype = stored.dtype;
    whole.shape = stored.shape;
    const auto element = static_cast<size_t>(bits_of(stored.dtype) / 8);
    whole.bytes.resize(static_cast<size_t>(num_bytes(stored.dtype, stored.shape, newest.string())));
    for (const StoredPiece& piece : stored.pieces) {
      std::string bytes(static_cast<size_t>(piece.bytes), '\0');
      File::open_to_read(index.files[static_cast<size_t>(piece.file)])
          .read(piece.position, bytes.data(), piece.bytes);
      place_piece(piece, bytes, element, whole);
    }
  }
  if (tensors.empty()) throw Broken("the checkpoint " + newest.string() + " holds no tensor");
  return tensors;
}

double difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size() || b.empty())
    throw Broken(
        titan::detail::concat("one run has ", a.size(), " values and the other ", b.size()));
  double most = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) || std::isnan(b[i])) return std::nan("");
    most = std::max(most, std::fabs(a[i] - b[i]));
    largest = std::max(largest, std::fabs(b[i]));
  }
  return largest > 0 ? most / largest : most;
}

double difference(const std::map<std::string, StoredBytes>& a,
                  const std::map<std::string, StoredBytes>& b) {
  if (names_of(a) != names_of(b)) throw Broken("the checkpoints hold tensors of different names");
  double most = 0;
  for (const auto& [name, tensor] : a) {
    const StoredBytes& other = b.at(name);
    if (tensor.shape != other.shape || tensor.dtype != other.dtype)
      throw Broken("the tensor '" + name + "' has another shape or dtype");
    const std::vector<double> x = numbers_of(tensor);
    if (!x.empty()) most = std::max(most, difference(x, numbers_of(other)));
  }
  return most;
}

void expect_same_bits(const TestContext& test, const JobRun& a, const JobRun& b,
                      const std::string& what) {
  const auto compare = [&](const std::vector<double>& x, const std::vector<double>& y,
                           const char* name) {
    const size_t common = std::min(x.size(), y.size());
    for (size_t i = 1; i <= common; ++i)  // a resumed run has only the last steps
      test.expect(x[x.size() - i] == y[y.size() - i], what, ": the ", name,
                  " differs: ", x[x.size() - i], " and ", y[y.size() - i]);
  };
  compare(a.losses(), b.losses(), "loss");
  compare(a.norms(), b.norms(), "gradient norm");
  if (!fs::exists(a.folder() / "checkpoint") || !fs::exists(b.folder() / "checkpoint")) return;
  const auto x = a.tensors(), y = b.tensors();
  test.expect(names_of(x) == names_of(y), what, ": the checkpoints hold different tensors");
  for (const auto& [name, tensor] : x)
    test.expect(tensor.bytes == y.at(name).bytes, what, ": the tensor '", name,
                "' differs in its bits");
}

void measure_runs(TestContext& test, const JobRun& a, const JobRun& b, bool compares_weights) {
  test.measure("difference of losses", difference(a.losses(), b.losses()));
  if (!compares_weights) return;
  auto tensors = a.tensors();
  const auto others = b.tensors();
  if (test.has("StatefulOptimizer") && test.subject().kind != "optimizer")
    std::erase_if(tensors, [&](const auto& tensor) {
      return tensor.first.starts_with("optim.") && !others.contains(tensor.first);
    });
  test.measure("difference of saved tensors", difference(tensors, others));
}

}  // namespace titan::conformance
