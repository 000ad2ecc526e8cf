#include "filter.cuh"

namespace tropical::cuda {

template bool filter_applies<double>(const ProductArgs&, Filtering, const Target&);
template bool filter_applies<float>(const ProductArgs&, Filtering, const Target&);
template bool filter_fits<double>(const ProductArgs&, const Target&);
template bool filter_fits<float>(const ProductArgs&, const Target&);

using Product = const int*(const ProductArgs&, Filtering, FilterCounts*, Call&, Scratch&);
template Product filter_product<MaxPlus, double, false>;
template Product filter_product<MaxPlus, double, true>;
template Product filter_product<MinPlus, double, false>;
template Product filter_product<MinPlus, double, true>;
template Product filter_product<MaxPlus, float, false>;
template Product filter_product<MaxPlus, float, true>;
template Product filter_product<MinPlus, float, false>;
template Product filter_product<MinPlus, float, true>;

}  // namespace tropical::cuda
