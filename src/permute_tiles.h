// How a copy in another order of axes is cut into tiles: runs along what is contiguous in either array, which go
// through a buffer where memory is near. Both backends work by it.
#pragma once
#include <algorithm>

#include "params.h"

namespace tropical {

// One axis of a tile, and what a step along it is in either array and in the buffer, in elements.
struct TileAxis {
  int32_t extent;
  int32_t buffer;
  int64_t from, to;
};

// Some axes of a tile, the fastest first. Only the last may be cut short at the end of the array.
struct TileList {
  static constexpr int kMost = 16;
  int count = 0;
  uint8_t axis[kMost];
};

// Tiles along an axis of the array.
struct TileSteps {
  int64_t count;
  int64_t from, to;            // from one tile to the next
  int32_t axis, short_extent;  // of the last tile along it; axis -1: a single element
};

struct PermuteTiles {
  int axis_count = 0, step_count = 0;
  TileAxis axis[TileList::kMost];
  // A tile is read run by run as it lies in `from`, and written run by run as it lies in `to`, where runs are
  // contiguous.
  TileList read_run, read_rest, write_run, write_rest;
  int64_t tiles = 1;
  int32_t buffer_size = 1;
  TileSteps step[kMaxPermuteAxes];  // the slowest first

  TROPICAL_HD int32_t length(const TileList& list) const {
    int32_t n = 1;
    for (int i = 0; i < list.count; ++i) n *= axis[list.axis[i]].extent;
    return n;
  }
  // The offset of element `index` of a list, by one of the members of TileAxis.
  template <class T>
  TROPICAL_HD T offset(const TileList& list, int32_t index, T TileAxis::*step_of) const {
    T sum = 0;
    for (int i = 0; i < list.count; ++i) {
      const TileAxis& a = axis[list.axis[i]];
      sum += static_cast<T>(index % a.extent) * (a.*step_of);
      index /= a.extent;
    }
    return sum;
  }
};

// What the tiles are made for: elements of a run, of a tile; and whether the buffer is laid out for a warp, whose lanes
// shall find elements of either run in different banks, or takes what is read as it comes.
struct TileShape {
  int32_t run, most;
  bool banked;
};

class PermuteTiler {
 public:
  PermuteTiler(const PermuteParams& p, const TileShape& shape) : p_(p), shape_(shape) {
    int64_t compact = 1;
    for (int d = p.ndim - 1; d >= 0; compact *= p.size[d--]) to_[d] = compact;
  }

  PermuteTiles make() {
    int32_t run = shape_.run;
    // An axis that is innermost in both is copied in long runs.
    if (p_.ndim > 0 && p_.stride[p_.ndim - 1] == 1 && p_.size[p_.ndim - 1] >= run) run *= 4;
    // Longer ones too where an axis is too short for the others.
    while (choose(run) < shape_.most / 4 && run < shape_.most / 4) run *= 2;
    lay_out();
    steps();
    return tiles_;
  }

 private:
  // Axis d of the array as an axis of the tile, -1 where the tile has one element of it.
  int axis_of(int d) const {
    for (int i = 0; i < tiles_.axis_count; ++i)
      if (array_axis_[i] == d) return i;
    return -1;
  }
  int add(int d, int64_t extent) {
    const int i = tiles_.axis_count++;
    array_axis_[i] = d;
    tiles_.axis[i] = {static_cast<int32_t>(extent), 0, p_.stride[d], to_[d]};
    return i;
  }
  static void push(TileList& list, int axis) { list.axis[list.count++] = static_cast<uint8_t>(axis); }
  static bool holds(const TileList& list, int axis) {
    return std::find(list.axis, list.axis + list.count, axis) != list.axis + list.count;
  }

  // The axes of a tile with runs of about that length; returns its elements.
  int64_t choose(int32_t run) {
    tiles_ = {};
    int order[kMaxPermuteAxes], count = 0;
    for (int d = p_.ndim - 1; d >= 0; --d)
      if (p_.stride[d] != 0) order[count++] = d;
    std::stable_sort(order, order + count,
                     [&](int x, int y) { return std::abs(p_.stride[x]) < std::abs(p_.stride[y]); });
    bool full = true;
    int64_t have = 1;
    for (int i = 0; i < count && full; ++i) {
      const int64_t extent = std::min(p_.size[order[i]], run / have);
      if (extent < 2) break;
      push(tiles_.read_run, add(order[i], extent));
      have *= extent;
      full = extent == p_.size[order[i]];
    }
    full = true;
    have = 1;
    int d = p_.ndim - 1;
    for (; d >= 0 && have < run && full; --d) {
      int axis = axis_of(d);
      if (axis < 0) {
        const int64_t extent = std::min(p_.size[d], run / have);
        if (extent < 2 || tiles_.axis_count == TileList::kMost) break;
        axis = add(d, extent);
        push(tiles_.read_rest, axis);
      } else if (have * tiles_.axis[axis].extent > int64_t{2} * run) {
        break;
      }
      push(tiles_.write_run, axis);
      have *= tiles_.axis[axis].extent;
      full = tiles_.axis[axis].extent == p_.size[d];
    }
    for (int i = 0; i < tiles_.read_run.count; ++i)
      if (!holds(tiles_.write_run, tiles_.read_run.axis[i])) push(tiles_.write_rest, tiles_.read_run.axis[i]);
    int64_t size = int64_t{tiles_.length(tiles_.read_run)} * tiles_.length(tiles_.read_rest);
    // The same runs in both: several of them.
    if (tiles_.write_rest.count > 0 || (!full && tiles_.read_rest.count > 0)) return size;
    for (; d >= 0 && axis_of(d) < 0 && tiles_.axis_count < TileList::kMost; --d) {
      const int64_t extent = std::min(p_.size[d], shape_.most / size);
      if (extent < 2) break;
      const int axis = add(d, extent);
      push(tiles_.read_rest, axis), push(tiles_.write_rest, axis);
      size *= extent;
      if (extent < p_.size[d]) break;
    }
    return size;
  }

  void lay_out() {
    int32_t step = 1;
    const auto place = [&](int axis) {
      tiles_.axis[axis].buffer = step;
      step *= tiles_.axis[axis].extent;
    };
    const TileList& run = tiles_.read_run;
    for (const bool shared : {true, false})
      for (int i = 0; i < run.count; ++i) {
        const bool first = !shape_.banked || holds(tiles_.write_run, run.axis[i]);
        if (first == shared) place(run.axis[i]);
      }
    if (shape_.banked) {
      // One word of what both runs share between lines of the buffer.
      int32_t shared = 1;
      for (int i = 0; i < run.count; ++i)
        if (holds(tiles_.write_run, run.axis[i])) shared *= tiles_.axis[run.axis[i]].extent;
      if (shared < step) step += shared;
    }
    for (int i = 0; i < tiles_.read_rest.count; ++i) place(tiles_.read_rest.axis[i]);
    tiles_.buffer_size = step;
  }

  void steps() {
    for (int d = 0; d < p_.ndim; ++d) {
      const int axis = axis_of(d);
      const int64_t extent = axis < 0 ? 1 : tiles_.axis[axis].extent, count = (p_.size[d] + extent - 1) / extent;
      if (count == 1) continue;
      const auto rest = static_cast<int32_t>(p_.size[d] - (count - 1) * extent);
      tiles_.step[tiles_.step_count++] = {count, p_.stride[d] * extent, to_[d] * extent, axis, rest};
      tiles_.tiles *= count;
    }
    // Tiles that follow each other are near in one of the arrays.
    const auto distance = [](const TileSteps& s) { return std::min(std::abs(s.from), s.to); };
    std::stable_sort(tiles_.step, tiles_.step + tiles_.step_count,
                     [&](const TileSteps& x, const TileSteps& y) { return distance(x) > distance(y); });
  }

  const PermuteParams& p_;
  const TileShape shape_;
  int64_t to_[kMaxPermuteAxes];
  int array_axis_[TileList::kMost];
  PermuteTiles tiles_;
};

struct alignas(16) Sixteen {
  uint64_t word[2];
};

// Calls f for a type of that many bytes.
template <class F>
void visit_item(int bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    default:
      return f.template operator()<Sixteen>();
  }
}

}  // namespace tropical
