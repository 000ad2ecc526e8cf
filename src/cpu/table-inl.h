// Kernels tables from the lowering table, for one instruction set.
#if defined(TROPICAL_CPU_TABLE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROPICAL_CPU_TABLE_INL_H_
#undef TROPICAL_CPU_TABLE_INL_H_
#else
#define TROPICAL_CPU_TABLE_INL_H_
#endif

#include "cpu/kernels.h"
#include "cpu/pack-inl.h"
#include "cpu/store-inl.h"
#include "cpu/tile_shapes-inl.h"
#include "visit.h"

HWY_BEFORE_NAMESPACE();
namespace tropical::cpu::HWY_NAMESPACE {

template <class L, bool kArgmax>
Kernels MakeKernels() {
  using T = typename L::T;
  using O = Ops<typename L::Core, T, L::kCareful>;
  using R = Rounding<L>;
  constexpr bool kRare = L::kCareful;
  Kernels k;
  k.in_bytes = sizeof(typename L::In);
  k.bytes = sizeof(T);
  k.chunk = kChunkSteps<T>;
  k.columns_per_lane = L::kColumnsPerLane;
  k.native = L::kNative;
  k.pack_a = &Pack<L>;
  k.pack_b = &PackPanel<L>;
  k.finite = &Finite<T>;
  k.facts = &FactsOf<L>;
  if constexpr (kArgmax) {
    k.chunked = MakeFamily<ChunkedJob<O, R>, std::conditional_t<kRare, RareShapes, ChunkedShapes>, T>();
    k.straight = MakeFamily<StraightJob<O, R>, std::conditional_t<kRare, RareShapes, StraightShapes>, T>();
    k.transpose_panel = &TransposePanel<T>;
    k.recover = &Recover<L, O>;
    k.store_argmax = &StoreArgmax<L, O>;
  } else {
    k.values = MakeFamily<ValuesJob<O>, std::conditional_t<kRare, RareShapes, ValuesShapes>, T>();
    k.store = &Store<L>;
  }
  return k;
}

template <class S, class In, Path kPath, bool kArgmax>
const Kernels* TableFor() {
  if constexpr (has_path<S, In>(kPath)) {
    static const Kernels table = MakeKernels<Lowered<S, In, kPath, kArgmax>, kArgmax>();
    return &table;
  } else {
    return nullptr;
  }
}

template <class S, class In, bool kArgmax>
const Kernels* TableFor(Path path) {
  switch (path) {
    case Path::plain:
      return TableFor<S, In, Path::plain, kArgmax>();
    case Path::mapped:
      return TableFor<S, In, Path::mapped, kArgmax>();
    case Path::wide:
      return TableFor<S, In, Path::wide, kArgmax>();
    case Path::careful:
      return TableFor<S, In, Path::careful, kArgmax>();
  }
  return nullptr;
}

template <class In>
const Kernels* FindKernels(Semiring semiring, Path path, bool argmax) {
  const Kernels* found = nullptr;
  visit_semiring(semiring, [&]<class S>() {
    if constexpr (supported_v<S, In>) found = argmax ? TableFor<S, In, true>(path) : TableFor<S, In, false>(path);
  });
  return found;
}

}  // namespace tropical::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
