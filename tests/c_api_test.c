/* The C interface from plain C11: codes, messages and results. */
#include "tropical_gemm/c_api.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;

#define CHECK(condition)                                                                                         \
  do {                                                                                                           \
    if (!(condition)) {                                                                                          \
      fprintf(stderr, "%s:%d: %s fails; last error: \"%s\"\n", __FILE__, __LINE__, #condition, tg_last_error()); \
      ++failures;                                                                                                \
    }                                                                                                            \
  } while (0)

static DLTensor tensor(void* data, uint8_t code, uint8_t bits, int64_t* shape, int32_t ndim) {
  DLTensor t;
  memset(&t, 0, sizeof t);
  t.data = data;
  t.device.device_type = kDLCPU;
  t.ndim = ndim;
  t.dtype.code = code;
  t.dtype.bits = bits;
  t.dtype.lanes = 1;
  t.shape = shape;
  return t;
}

static int says(const char* part) { return strstr(tg_last_error(), part) != NULL; }

static void test_names(void) {
  tg_semiring s = TG_OR_AND;
  CHECK(tg_parse_semiring("MinPlus", &s) == TG_OK && s == TG_MIN_PLUS);
  CHECK(strcmp(tg_last_error(), "") == 0);
  CHECK(tg_parse_semiring("plus_times", &s) == TG_INVALID_VALUE && says("'plus_times'") && says("max_plus"));
  CHECK(s == TG_MIN_PLUS);
  CHECK(tg_parse_semiring(NULL, &s) == TG_INVALID_VALUE && says("NULL"));
  CHECK(tg_parse_semiring("max_plus", NULL) == TG_INVALID_VALUE);
  CHECK(strchr(tg_version(), '.') != NULL);
}

static void test_matmul(void) {
  float a[] = {0, 2, 1, 5}, b[] = {3, 1, 0, 4, 1, 0}, c[6];
  int32_t arg[6];
  int64_t a_shape[] = {2, 2}, b_shape[] = {2, 3}, c_shape[] = {2, 3}, shape[2] = {0, 0};
  int32_t ndim = 0, i;
  const DLTensor ta = tensor(a, kDLFloat, 32, a_shape, 2), tb = tensor(b, kDLFloat, 32, b_shape, 2);
  const DLTensor tc = tensor(c, kDLFloat, 32, c_shape, 2), targ = tensor(arg, kDLInt, 32, c_shape, 2);
  const float expected[] = {6, 3, 2, 9, 6, 5};
  tg_matmul_options options;

  CHECK(tg_matmul_shape(&ta, &tb, &ndim, shape) == TG_OK && ndim == 2 && shape[0] == 2 && shape[1] == 3);
  ndim = 0;
  CHECK(tg_matmul_shape(&ta, &tb, &ndim, NULL) == TG_OK && ndim == 2);
  CHECK(tg_matmul_shape(&tb, &tb, &ndim, NULL) == TG_INVALID_VALUE && says("(2, 3)"));
  CHECK(tg_matmul_shape(&ta, NULL, &ndim, NULL) == TG_INVALID_VALUE && says("b is NULL"));
  CHECK(tg_matmul_shape(&ta, &tb, NULL, NULL) == TG_INVALID_VALUE && says("ndim is NULL"));

  CHECK(tg_matmul(TG_MAX_PLUS, &ta, &tb, &tc, &targ, NULL) == TG_OK);
  for (i = 0; i < 6; ++i) CHECK(c[i] == expected[i] && arg[i] == 1);

  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.accumulate = 1;
  options.argmax_offset = 10;
  options.threads = 1;
  c[0] = 100;
  c[1] = -100;
  CHECK(tg_matmul(TG_MAX_PLUS, &ta, &tb, &tc, &targ, &options) == TG_OK);
  CHECK(c[0] == 100 && arg[0] == 1 && c[1] == 3 && arg[1] == 11 && arg[2] == 1);
}

static void test_errors(void) {
  double a[] = {1, 2, 3, 4}, c[] = {7, 7, 7, 7};
  int64_t shape[] = {2, 2}, other[] = {4, 1};
  const DLTensor ta = tensor(a, kDLFloat, 64, shape, 2);
  DLTensor tc = tensor(c, kDLFloat, 64, shape, 2), bad;
  tg_matmul_options options;

  CHECK(tg_matmul(TG_MAX_PLUS, NULL, &ta, &tc, NULL, NULL) == TG_INVALID_VALUE && says("a is NULL"));
  CHECK(tg_matmul(TG_MAX_PLUS, &ta, &ta, NULL, NULL, NULL) == TG_INVALID_VALUE && says("is NULL"));
  CHECK(tg_matmul((tg_semiring)99, &ta, &ta, &tc, NULL, NULL) == TG_INVALID_VALUE && says("semiring is 99"));
  CHECK(tg_matmul(TG_OR_AND, &ta, &ta, &tc, NULL, NULL) == TG_INVALID_TYPE && says("or_and"));
  bad = ta;
  bad.dtype.code = kDLUInt;
  CHECK(tg_matmul(TG_MAX_PLUS, &bad, &ta, &tc, NULL, NULL) == TG_INVALID_TYPE && says("uint64"));
  bad = ta;
  bad.device.device_type = kDLCUDA;
  CHECK(tg_matmul(TG_MAX_PLUS, &bad, &ta, &tc, NULL, NULL) == TG_INVALID_VALUE && says("a is on cuda:0"));
  bad.device.device_type = kDLMetal;
  CHECK(tg_matmul(TG_MAX_PLUS, &bad, &ta, &tc, NULL, NULL) == TG_UNSUPPORTED && says("a is on"));
  bad = tc;
  bad.shape = other;
  CHECK(tg_matmul(TG_MAX_PLUS, &ta, &ta, &bad, NULL, NULL) == TG_INVALID_VALUE && says("(4, 1)") && says("(2, 2)"));
  bad = tc;
  bad.data = a;
  CHECK(tg_matmul(TG_MAX_PLUS, &ta, &ta, &bad, NULL, NULL) == TG_INVALID_VALUE && says("overlaps"));
  memset(&options, 0, sizeof options);
  CHECK(tg_matmul(TG_MAX_PLUS, &ta, &ta, &tc, NULL, &options) == TG_INVALID_VALUE && says("struct_size is 0"));
  options.struct_size = offsetof(tg_matmul_options, cuda); /* the first version, without the fields after */
  options.threads = -2;
  CHECK(tg_matmul(TG_MAX_PLUS, &ta, &ta, &tc, NULL, &options) == TG_INVALID_VALUE && says("threads is -2"));
  CHECK(c[0] == 7 && c[3] == 7 && a[0] == 1 && a[3] == 4);
  CHECK(tg_matmul(TG_MAX_PLUS, &ta, &ta, &tc, NULL, NULL) == TG_OK && strcmp(tg_last_error(), "") == 0 && c[0] == 5);
}

static void test_backward(void) {
  float a[] = {1, 2}, b[] = {3, 4}, grad = 2, ga[2], gb[2];
  int64_t row[] = {1, 2}, column[] = {2, 1}, one[] = {1, 1};
  int32_t arg = 1;
  const DLTensor ta = tensor(a, kDLFloat, 32, row, 2), tb = tensor(b, kDLFloat, 32, column, 2);
  const DLTensor tg = tensor(&grad, kDLFloat, 32, one, 2), targ = tensor(&arg, kDLInt, 32, one, 2);
  const DLTensor tga = tensor(ga, kDLFloat, 32, row, 2), tgb = tensor(gb, kDLFloat, 32, column, 2);

  tg_backward_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;

  CHECK(tg_matmul_backward(TG_MAX_MUL, &tg, &targ, &ta, &tb, &tga, &tgb, NULL) == TG_OK);
  CHECK(ga[0] == 0 && ga[1] == 8 && gb[0] == 0 && gb[1] == 4);
  ga[1] = 0;
  gb[1] = 99;
  options.threads = 1;
  CHECK(tg_matmul_backward(TG_MAX_MUL, &tg, &targ, &ta, &tb, &tga, NULL, &options) == TG_OK && ga[1] == 8 &&
        gb[1] == 99);
  CHECK(tg_matmul_backward(TG_MAX_MUL, &tg, NULL, &ta, &tb, &tga, &tgb, NULL) == TG_INVALID_VALUE &&
        says("argmax is NULL"));
  options.threads = -1;
  CHECK(tg_matmul_backward(TG_MAX_MUL, &tg, &targ, &ta, &tb, &tga, &tgb, &options) == TG_INVALID_VALUE);
  options.struct_size = 4;
  CHECK(tg_matmul_backward(TG_MAX_MUL, &tg, &targ, &ta, &tb, &tga, &tgb, &options) == TG_INVALID_VALUE &&
        says("struct_size is 4"));
}

int main(void) {
  test_names();
  test_matmul();
  test_errors();
  test_backward();
  if (failures == 0) puts("all checks passed");
  return failures != 0;
}
