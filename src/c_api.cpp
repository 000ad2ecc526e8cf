#include "tropical_gemm/c_api.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <string>

#include "execute.h"
#include "tropical_gemm/matmul.h"
#include "tropical_gemm/version.h"
#include "validate.h"

namespace {

using tropical::Error;
using tropical::ErrorCode;

thread_local std::string last_error;

static_assert(TG_INVALID_VALUE == static_cast<int>(ErrorCode::invalid_value));
static_assert(TG_INTERNAL == static_cast<int>(ErrorCode::internal));
static_assert(TG_OVERFLOW == static_cast<int>(ErrorCode::overflow));
static_assert(TG_OR_AND == static_cast<int>(tropical::Semiring::or_and));

// Where there is no memory for a message, one that needs none.
void remember(const char* message) noexcept {
  try {
    last_error = message;
  } catch (const std::bad_alloc&) {
    last_error = "out of memory";
  }
}

// Runs body; whatever it throws becomes a code and this thread's message.
template <class F>
tg_status guarded(F&& body) noexcept {
  try {
    last_error.clear();
    body();
    return TG_OK;
  } catch (const Error& e) {
    remember(e.what());
    return static_cast<tg_status>(e.code());
  } catch (const std::bad_alloc&) {
    remember("out of memory");
    return TG_OUT_OF_MEMORY;
  } catch (const std::exception& e) {
    remember(e.what());
    return TG_INTERNAL;
  } catch (...) {  // from a caller's allocator
    remember("an exception that is no std::exception");
    return TG_INTERNAL;
  }
}

const DLTensor& required(const DLTensor* x, const char* name) {
  if (!x) throw Error(ErrorCode::invalid_value, std::string(name) + " is NULL, expected a tensor");
  return *x;
}

// The caller's options. A struct of an earlier version is shorter, and the fields it lacks are 0.
template <class Options>
Options options_of(const Options* given, size_t first_version) {
  Options options{};
  if (!given) return options;
  if (given->struct_size < first_version)
    throw Error(ErrorCode::invalid_value, "options.struct_size is " + std::to_string(given->struct_size) +
                                              ", expected the size of the struct, " + std::to_string(sizeof(Options)));
  std::memcpy(&options, given, std::min<size_t>(given->struct_size, sizeof(Options)));
  return options;
}

tropical::CudaOptions cuda_of(const tg_cuda_options& o) { return {o.stream, o.allocate, o.context}; }

tropical::Semiring checked(tg_semiring s) {
  if (!tropical::is_semiring(s))
    throw Error(ErrorCode::invalid_value, "semiring is " + std::to_string(s) + ", expected a tg_semiring");
  return static_cast<tropical::Semiring>(s);
}

}  // namespace

const char* tg_version(void) { return TROPICAL_GEMM_VERSION; }

const char* tg_last_error(void) { return last_error.c_str(); }

tg_status tg_parse_semiring(const char* name, tg_semiring* semiring) {
  return guarded([&] {
    if (!name || !semiring) throw Error(ErrorCode::invalid_value, "name or semiring is NULL");
    *semiring = static_cast<tg_semiring>(tropical::parse_semiring(name));
  });
}

tg_status tg_matmul_shape(const DLTensor* a, const DLTensor* b, int32_t* ndim, int64_t* shape) {
  return guarded([&] {
    if (!ndim) throw Error(ErrorCode::invalid_value, "ndim is NULL");
    const auto s = tropical::matmul_shape(required(a, "a"), required(b, "b"));
    *ndim = static_cast<int32_t>(s.size());
    if (shape) std::copy(s.begin(), s.end(), shape);
  });
}

tg_status tg_matmul(tg_semiring semiring, const DLTensor* a, const DLTensor* b, const DLTensor* c,
                    const DLTensor* argmax, const tg_matmul_options* options) {
  return guarded([&] {
    const tg_matmul_options given = options_of(options, offsetof(tg_matmul_options, cuda));
    tropical::MatmulOptions o;
    o.accumulate = given.accumulate != 0;
    o.argmax_offset = given.argmax_offset;
    o.threads = given.threads;
    tropical::MatmulParams p =
        tropical::validate_matmul(checked(semiring), required(a, "a"), required(b, "b"), required(c, "out"), argmax, o);
    p.cancel.word = given.cancel;
    tropical::execute(p, *a, cuda_of(given.cuda));
  });
}

tg_status tg_matmul_backward(tg_semiring semiring, const DLTensor* grad_c, const DLTensor* argmax, const DLTensor* a,
                             const DLTensor* b, const DLTensor* grad_a, const DLTensor* grad_b,
                             const tg_backward_options* options) {
  return guarded([&] {
    const tg_backward_options given = options_of(options, sizeof(tg_backward_options));
    tropical::matmul_backward(checked(semiring), required(grad_c, "grad_c"), required(argmax, "argmax"),
                              required(a, "a"), required(b, "b"), grad_a, grad_b, given.threads, cuda_of(given.cuda));
  });
}
