/* A small stable C interface over the run-time-typed entry. No exception crosses it: every function returns a
 * code, and tg_last_error() gives the message of this thread's last failure. Shapes, dtypes, strides and
 * results are those of matmul.h. */
#ifndef TROPICAL_GEMM_C_API_H_
#define TROPICAL_GEMM_C_API_H_
#include <stddef.h>
#include <stdint.h>

#include "tropical_gemm/dlpack.h"
#include "tropical_gemm/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  TG_OK = 0,
  TG_INVALID_VALUE = 1,
  TG_INVALID_TYPE = 2,
  TG_UNSUPPORTED = 3,
  TG_CANCELLED = 4,
  TG_OUT_OF_MEMORY = 5,
  TG_INTERNAL = 6,
  TG_OVERFLOW = 7 /* an exact result does not fit its dtype */
} tg_status;

/* An integer type, so that any value may come in and an unknown one is reported. */
typedef int32_t tg_semiring;
enum {
  TG_MAX_PLUS = 0,
  TG_MIN_PLUS = 1,
  TG_MAX_MUL = 2,
  TG_MIN_MUL = 3,
  TG_MAX_MIN = 4,
  TG_MIN_MAX = 5,
  TG_OR_AND = 6
};

/* For tensors on a CUDA device. A field left 0 is the legacy default stream, or memory from the device's
 * stream-ordered pool. */
typedef struct {
  void* stream;                                   /* a cudaStream_t of the tensors' device */
  void* (*allocate)(void* context, size_t bytes); /* scratch memory, aligned to 256 bytes; called at most once */
  void* context;
} tg_cuda_options;

/* Options: zero-initialise, set struct_size to the size of the struct, then the fields wanted. */
typedef struct {
  uint64_t struct_size;
  int64_t argmax_offset;
  int32_t accumulate;             /* 0 or 1 */
  int32_t threads;                /* 0: all */
  const volatile int32_t* cancel; /* polled between blocks; nonzero stops the call with TG_CANCELLED */
  tg_cuda_options cuda;
} tg_matmul_options;

typedef struct {
  uint64_t struct_size;
  int32_t threads; /* 0: all */
  tg_cuda_options cuda;
} tg_backward_options;

/* Library version as "major.minor.patch". */
TROPICAL_API const char* tg_version(void);
/* Message of the last failure on this thread; "" if there was none. Valid until the thread's next call. */
TROPICAL_API const char* tg_last_error(void);
/* The value for a name such as "min_plus" or "MinPlus". */
TROPICAL_API tg_status tg_parse_semiring(const char* name, tg_semiring* semiring);
/* Writes the number of dimensions of the product to *ndim and, where `shape` is not NULL, its sizes there
 * (room for max(a->ndim, b->ndim, 2) entries is enough). */
TROPICAL_API tg_status tg_matmul_shape(const DLTensor* a, const DLTensor* b, int32_t* ndim, int64_t* shape);
/* c = a x b; argmax and options may be NULL. */
TROPICAL_API tg_status tg_matmul(tg_semiring semiring, const DLTensor* a, const DLTensor* b, const DLTensor* c,
                                 const DLTensor* argmax, const tg_matmul_options* options);
/* Either gradient and the options may be NULL. */
TROPICAL_API tg_status tg_matmul_backward(tg_semiring semiring, const DLTensor* grad_c, const DLTensor* argmax,
                                          const DLTensor* a, const DLTensor* b, const DLTensor* grad_a,
                                          const DLTensor* grad_b, const tg_backward_options* options);

#ifdef __cplusplus
}
#endif
#endif /* TROPICAL_GEMM_C_API_H_ */
