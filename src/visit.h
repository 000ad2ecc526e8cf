// From run-time enumerations to types: visit(semiring, dtype, []<class S, class T>() { ... }).
#pragma once
#include <utility>

#include "tropical_gemm/error.h"
#include "tropical_gemm/semiring.h"

namespace tropical {

namespace detail {
template <class F, class... Ts>
void visit_list(auto id, TypeList<Ts...>, auto id_of, F&& f) {
  (void)((id == id_of.template operator()<Ts>() ? (f.template operator()<Ts>(), true) : false) || ...);
}
}  // namespace detail

template <class F>
void visit_semiring(Semiring semiring, F&& f) {
  detail::visit_list(
      semiring, AllSemirings{}, []<class S>() { return S::kId; }, std::forward<F>(f));
}

template <class F>
void visit_dtype(DType dtype, F&& f) {
  detail::visit_list(
      dtype, AllTypes{}, []<class T>() { return TypeInfo<T>::kId; }, std::forward<F>(f));
}

// Calls f for the supported pair; an unsupported pair calls nothing (the entry has rejected it).
template <class F>
void visit(Semiring semiring, DType dtype, F&& f) {
  visit_semiring(semiring, [&]<class S>() {
    visit_dtype(dtype, [&]<class T>() {
      if constexpr (supported_v<S, T>) f.template operator()<S, T>();
    });
  });
}

}  // namespace tropical
