// Products of f64 and f32 through cheap bounds: what the plain product needs to know of them.
#pragma once
#include "call.h"

namespace tropical::cuda {

template <class S, class In>
inline constexpr bool is_filtered_v = (std::is_same_v<S, MaxPlus> ||
                                       std::is_same_v<S, MinPlus>)&&(std::is_same_v<In, double> ||
                                                                     std::is_same_v<In, float>);

// Whether a product may go that way, from its sizes alone.
template <class In>
bool filter_applies(const ProductArgs& args, Filtering filtering, const Target& target);

// Whether the bounds take little of the memory: large graphs fill it, and some has to be left for what is only faster.
template <class In>
bool filter_fits(const ProductArgs& args, const Target& target);

// Enqueues one product, no batch. The result is a word on the device for later kernels: nonzero once C is complete;
// else the plain kernels have to follow, as the data are not worth it or too much was left unproved. That word stays
// taken in the call's scratch memory; what else was used is taken in `rest` and free for what follows.
template <class S, class In, bool kArgmax>
const int* filter_product(const ProductArgs& args, Filtering filtering, FilterCounts* report, Call& call,
                          Scratch& rest);

}  // namespace tropical::cuda
