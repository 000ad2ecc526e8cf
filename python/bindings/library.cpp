#include "library.h"

namespace tropical::python {

void bad_value(const std::string& text) { throw Error(ErrorCode::invalid_value, text); }

std::string text_of(nb::handle object) { return nb::str(object).c_str(); }

std::string dtype_list() {
  std::string names;
  [&]<class... T>(TypeList<T...>) {
    ((names += std::string(names.empty() ? "" : ", ") + TypeInfo<T>::kName), ...);
  }(AllTypes{});
  return names;
}

void bad_dtype(const std::string& dtype, const char* name) {
  throw Error(ErrorCode::invalid_type, std::string(name) + " has dtype " + dtype + ", expected one of " + dtype_list());
}

void Reading::compact(const std::vector<int64_t>& sizes) {
  if (sizes.size() > kMaxDims)
    bad_value("the result would have " + std::to_string(sizes.size()) + " dimensions, at most " +
              std::to_string(kMaxDims) + " are possible");
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0; step *= sizes[d]) {
    shape[d] = sizes[d];
    strides[d] = step;
  }
  tensor.ndim = static_cast<int32_t>(sizes.size());
  tensor.shape = shape;
  tensor.strides = strides;
}

const Library* library_of(nb::handle array) {
  if (const Library* torch = torch_library(array)) return torch;
  return cupy_library(array);
}

}  // namespace tropical::python
