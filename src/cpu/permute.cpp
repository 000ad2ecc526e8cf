// Copies with axes in another order: each tile is read in runs into a buffer that fits in the first-level cache, and
// written from there in runs, so that every line of memory is touched once.
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <bit>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "cpu/backend.h"
#include "parallel.h"
#include "permute_tiles.h"
#include "tropical_gemm/error.h"

namespace tropical::cpu {
namespace {

constexpr int64_t kThreadBytes = 1 << 17;  // worth a second thread
constexpr int64_t kStreamBytes = 1 << 23;  // that no cache keeps for the next reader

// The offsets of a list's elements.
template <class T>
std::vector<T> offsets(const PermuteTiles& t, const TileList& list, T TileAxis::*step) {
  std::vector<T> table(static_cast<size_t>(t.length(list)));
  for (size_t i = 0; i < table.size(); ++i) table[i] = t.offset(list, static_cast<int32_t>(i), step);
  return table;
}

template <class T>
class Permuter {
 public:
  explicit Permuter(const PermuteParams& p)
      : p_(p),
        t_(PermuteTiler(p, {static_cast<int32_t>(kRunBytes / sizeof(T)), kTileBytes / sizeof(T)}).make()),
        read_run_(offsets(t_, t_.read_run, &TileAxis::from)),
        read_rest_(offsets(t_, t_.read_rest, &TileAxis::from)),
        buffer_rest_(offsets(t_, t_.read_rest, &TileAxis::buffer)),
        write_rest_(offsets(t_, t_.write_rest, &TileAxis::to)),
        from_run_(offsets(t_, t_.write_run, &TileAxis::buffer)),
        from_rest_(offsets(t_, t_.write_rest, &TileAxis::buffer)) {
    contiguous_ = true;
    for (size_t i = 0; i < read_run_.size(); ++i) contiguous_ &= read_run_[i] == static_cast<int64_t>(i);
    // Whole lines of memory.
    streams_ = bytes() >= kStreamBytes && reinterpret_cast<uintptr_t>(p.to) % kLine == 0;
    const auto whole = [&](int64_t elements) { return elements * int64_t{sizeof(T)} % int64_t{kLine} == 0; };
    for (const int64_t at : write_rest_) streams_ &= whole(at);
    for (int s = 0; s < t_.step_count; ++s) streams_ &= whole(t_.step[s].to);
  }

  void run() {
    const int threads = bytes() < kThreadBytes ? 1 : thread_count(p_.threads);
    const int64_t tasks = std::min<int64_t>(t_.tiles, threads == 1 ? 1 : 32 * threads);
    parallel_for(tasks, threads, [&](int64_t task, int) {
      const std::unique_ptr<T[]> buffer(new T[static_cast<size_t>(t_.buffer_size)]);
      const int64_t end = (task + 1) * t_.tiles / tasks;
      Tile now = tile(task * t_.tiles / tasks);
      for (int64_t i = task * t_.tiles / tasks; i < end; ++i) {
        if (p_.cancel.raised()) throw Error(ErrorCode::cancelled, "the copy was cancelled by its caller");
        const Tile next = tile(std::min(i + 1, end - 1));
        read(now, buffer.get());
        write(now, buffer.get(), next);
        now = next;
      }
      if (streams_) fence();
    });
  }

 private:
  static constexpr size_t kLine = 64;
  static constexpr int64_t kRunBytes = 256, kTileBytes = 1 << 14;

  int64_t bytes() const { return t_.tiles * t_.length(t_.read_run) * t_.length(t_.read_rest) * int64_t{sizeof(T)}; }

  // Elements of a list in a tile, whose last axis may be cut short.
  size_t length(const TileList& list, size_t full, const int32_t* extents) const {
    if (list.count == 0) return full;
    const int axis = list.axis[list.count - 1];
    return full / static_cast<size_t>(t_.axis[axis].extent) * static_cast<size_t>(extents[axis]);
  }

  struct Tile {
    const T* from;
    T* to;
    int32_t extents[TileList::kMost];
  };
  Tile tile(int64_t index) const {
    Tile tile{static_cast<const T*>(p_.from), static_cast<T*>(p_.to), {}};
    for (int i = 0; i < t_.axis_count; ++i) tile.extents[i] = t_.axis[i].extent;
    for (int s = t_.step_count - 1; s >= 0; --s) {
      const TileSteps& step = t_.step[s];
      const int64_t at = index % step.count;
      index /= step.count;
      tile.from += at * step.from, tile.to += at * step.to;
      if (step.axis >= 0 && at == step.count - 1) tile.extents[step.axis] = t_.axis[step.axis].short_extent;
    }
    return tile;
  }

  void read(const Tile& tile, T* buffer) const {
    const size_t run = length(t_.read_run, read_run_.size(), tile.extents);
    const size_t rest = length(t_.read_rest, read_rest_.size(), tile.extents);
    for (size_t r = 0; r < rest; ++r) {
      const T* x = tile.from + read_rest_[r];
      T* y = buffer + buffer_rest_[r];
      if (contiguous_)
        std::memcpy(y, x, run * sizeof(T));
      else
        for (size_t e = 0; e < run; ++e) y[e] = x[read_run_[e]];
    }
  }

  // Writes a tile, and asks for what the next one reads.
  void write(const Tile& tile, const T* buffer, const Tile& next) const {
    const size_t run = length(t_.write_run, from_run_.size(), tile.extents);
    const size_t rest = length(t_.write_rest, from_rest_.size(), tile.extents);
    const size_t ahead = (read_rest_.size() + rest - 1) / rest;
    const bool streams = streams_ && run * sizeof(T) % kLine == 0;
    for (size_t r = 0, fetched = 0; r < rest; ++r) {
      for (const size_t end = std::min(fetched + ahead, read_rest_.size()); fetched < end; ++fetched)
        fetch(next.from + read_rest_[fetched]);
      const T* x = buffer + from_rest_[r];
      T* y = tile.to + write_rest_[r];
      size_t e = 0;
      if (streams)
        for (; e < run; e += kWord) stream(y + e, gathered(x, &from_run_[e]));
      else
        for (; e + kWord <= run; e += kWord) {
          const Word word = gathered(x, &from_run_[e]);
          std::memcpy(y + e, &word, sizeof word);
        }
      for (; e < run; ++e) y[e] = x[from_run_[e]];
    }
  }

  // Elements that are stored together.
  struct alignas(16) Word {
    T element[16 / sizeof(T)];
  };
  static constexpr size_t kWord = 16 / sizeof(T);
  static Word gathered(const T* x, const int32_t* at) {
#ifdef __SSE2__
    if constexpr (sizeof(T) == 4) {  // without the general registers that g++ takes
      const auto one = [&](int i) { return _mm_cvtsi32_si128(static_cast<int>(x[at[i]])); };
      return std::bit_cast<Word>(
          _mm_unpacklo_epi64(_mm_unpacklo_epi32(one(0), one(1)), _mm_unpacklo_epi32(one(2), one(3))));
    }
#endif
    return [&]<size_t... I>(std::index_sequence<I...>) { return Word{{x[at[I]]...}}; }
    (std::make_index_sequence<kWord>());
  }

  // Around the caches, which would read the lines first.
  static void stream(T* to, const Word& word) {
#ifdef __SSE2__
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), std::bit_cast<__m128i>(word));
#else
    std::memcpy(to, &word, sizeof word);
#endif
  }

  // What was stored around the caches is ordered before what the caller does next, such as telling another thread.
  static void fence() {
#ifdef __SSE2__
    _mm_sfence();
#endif
  }

  void fetch(const T* x) const {
    if (!contiguous_) return;
    for (size_t e = 0; e < read_run_.size(); e += kLine / sizeof(T)) __builtin_prefetch(x + e, 0, 1);
  }

  const PermuteParams& p_;
  const PermuteTiles t_;
  const std::vector<int64_t> read_run_, read_rest_;
  const std::vector<int32_t> buffer_rest_;
  const std::vector<int64_t> write_rest_;
  const std::vector<int32_t> from_run_, from_rest_;
  bool contiguous_, streams_;
};

}  // namespace

void permute(const PermuteParams& p) {
  visit_item(p.item, [&]<class T>() { Permuter<T>(p).run(); });
}

}  // namespace tropical::cpu
