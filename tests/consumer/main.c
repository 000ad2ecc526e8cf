/* The C interface from a C program. */
#include <stdio.h>
#include <tropical_gemm/c_api.h>

int main(void) {
  double values[] = {1, 2, 3, 4}, product[4];
  int64_t shape[] = {2, 2};
  const DLTensor a = {values, {kDLCPU, 0}, 2, {kDLFloat, 64, 1}, shape, NULL, 0};
  DLTensor c = a;
  c.data = product;
  if (tg_matmul(TG_MAX_PLUS, &a, &a, &c, NULL, NULL) != TG_OK) {
    fprintf(stderr, "%s\n", tg_last_error());
    return 1;
  }
  return product[0] == 5 && product[1] == 6 && product[2] == 7 && product[3] == 8 ? 0 : 1;
}
