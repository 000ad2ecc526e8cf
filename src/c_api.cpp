#include "tropical_gemm/c_api.h"

#include <algorithm>
#include <cstddef>
#include <new>
#include <string>

#include "cpu/backend.h"
#include "tropical_gemm/matmul.h"
#include "tropical_gemm/version.h"
#include "validate.h"

namespace {

using tropical::Error;
using tropical::ErrorCode;

thread_local std::string last_error;

static_assert(TG_INVALID_VALUE == static_cast<int>(ErrorCode::invalid_value));
static_assert(TG_INTERNAL == static_cast<int>(ErrorCode::internal));
static_assert(TG_OR_AND == static_cast<int>(tropical::Semiring::or_and));

// Runs body; whatever it throws becomes a code and this thread's message.
template <class F>
tg_status guarded(F&& body) noexcept {
  try {
    last_error.clear();
    body();
    return TG_OK;
  } catch (const Error& e) {
    last_error = e.what();
    return static_cast<tg_status>(e.code());
  } catch (const std::bad_alloc&) {
    last_error = "out of memory";
    return TG_OUT_OF_MEMORY;
  } catch (const std::exception& e) {
    last_error = e.what();
    return TG_INTERNAL;
  }
}

const DLTensor& required(const DLTensor* x, const char* name) {
  if (!x) throw Error(ErrorCode::invalid_value, std::string(name) + " is NULL, expected a tensor");
  return *x;
}

tropical::Semiring checked(tg_semiring s) {
  if (s < TG_MAX_PLUS || s > TG_OR_AND)
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
    tropical::MatmulOptions o;
    const volatile int32_t* cancel = nullptr;
    if (options) {
      if (options->struct_size < sizeof(tg_matmul_options))
        throw Error(ErrorCode::invalid_value,
                    "options.struct_size is " + std::to_string(options->struct_size) +
                        ", expected sizeof(tg_matmul_options) = " + std::to_string(sizeof(tg_matmul_options)));
      o.accumulate = options->accumulate != 0;
      o.argmax_offset = options->argmax_offset;
      o.threads = options->threads;
      cancel = options->cancel;
    }
    tropical::MatmulParams p =
        tropical::validate_matmul(checked(semiring), required(a, "a"), required(b, "b"), required(c, "c"), argmax, o);
    p.cancel.word = cancel;
    tropical::cpu::matmul(p);
  });
}

tg_status tg_matmul_backward(tg_semiring semiring, const DLTensor* grad_c, const DLTensor* argmax, const DLTensor* a,
                             const DLTensor* b, const DLTensor* grad_a, const DLTensor* grad_b, int32_t threads) {
  return guarded([&] {
    tropical::matmul_backward(checked(semiring), required(grad_c, "grad_c"), required(argmax, "argmax"),
                              required(a, "a"), required(b, "b"), grad_a, grad_b, threads);
  });
}
