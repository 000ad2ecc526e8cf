#include "filter.cuh"

namespace tropical::cuda {

#define TG_FILTER(S, In, kArgmax) \
  template const int* filter_product<S, In, kArgmax>(const ProductArgs&, Filtering, FilterCounts*, Call&, Scratch&);
#define TG_FILTERS(In)                                                            \
  template bool filter_applies<In>(const ProductArgs&, Filtering, const Target&); \
  TG_FILTER(MaxPlus, In, false) TG_FILTER(MaxPlus, In, true) TG_FILTER(MinPlus, In, false) TG_FILTER(MinPlus, In, true)
TG_FILTERS(double)
TG_FILTERS(float)

}  // namespace tropical::cuda
