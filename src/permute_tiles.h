// How a copy in another order of axes is cut into tiles: runs along what is contiguous in either array, which go
// through a buffer where memory is near. Both backends work by it.
#pragma once
#include <algorithm>
#include <bit>

#include "params.h"

namespace tropical {

// One axis of a tile, and what a step along it is in either array and in the buffer, in elements.
struct TileAxis {
  int32_t extent, short_extent;  // the latter of the last tile along it
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
  int64_t from, to;  // from one tile to the next
  int32_t axis;      // -1: the tile has a single element of it
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

// What the tiles are made for: elements of a run, of a tile; and for warps, elements that a lane moves at once and
// bytes of one, so that lanes find elements of either run in different banks. Without warps the buffer takes what is
// read as it comes.
struct TileShape {
  int32_t run, most;
  int32_t vector = 0, item = 0;
};

class PermuteTiler {
 public:
  PermuteTiler(const PermuteParams& p, const TileShape& shape) : p_(p), shape_(shape) {
    for (int d = p.ndim - 1; d >= 0; elements_ *= p.size[d--]) {
      to_[d] = elements_;
      if (p.stride[d] != 0) order_[ordered_++] = d;
    }
    std::stable_sort(order_, order_ + ordered_,
                     [&](int x, int y) { return std::abs(p.stride[x]) < std::abs(p.stride[y]); });
  }

  PermuteTiles make() {
    if (shape_.vector > 0) {
      grow();
      steps();
      split(tiles_.read_run), split(tiles_.write_run);
      lay_out_in_banks();
      return tiles_;
    }
    int32_t run = shape_.run;
    // An axis that is innermost in both is copied in long runs.
    if (p_.ndim > 0 && p_.stride[p_.ndim - 1] == 1 && p_.size[p_.ndim - 1] >= run) run *= 4;
    // Longer ones too where an axis is too short for the others.
    while (choose(run, run) < shape_.most / 4 && run < shape_.most / 4) run *= 2;
    steps();
    lay_out();
    return tiles_;
  }

 private:
  // Axis d of the array as an axis of the tile, -1 where the tile has one element of it.
  int axis_of(int d) const {
    for (int i = 0; i < tiles_.axis_count; ++i)
      if (array_axis_[i] == d) return i;
    return -1;
  }
  int add(int d, int32_t extent) {
    const int i = tiles_.axis_count++;
    array_axis_[i] = d;
    const auto rest = extent == p_.size[d] ? 0 : static_cast<int32_t>(p_.size[d] % extent);
    tiles_.axis[i] = {extent, rest > 0 ? rest : extent, 0, p_.stride[d], to_[d]};
    return i;
  }
  static void push(TileList& list, int axis) { list.axis[list.count++] = static_cast<uint8_t>(axis); }
  static bool holds(const TileList& list, int axis) {
    return std::find(list.axis, list.axis + list.count, axis) != list.axis + list.count;
  }

  // The whole array if it fits in a tile. Otherwise runs of the same length in both arrays, then longer ones, the
  // shorter first, as long as that makes a larger tile or a longer shortest run, and the tile is no larger than it may
  // be.
  void grow() {
    if (elements_ <= shape_.most) {
      choose(shape_.most, shape_.most);
      return;
    }
    int32_t read = shape_.run, write = shape_.run;
    const auto worth = [&](int32_t r, int32_t w) {
      const int64_t size = choose(r, w);
      return size > shape_.most ? 0 : size * std::min(tiles_.length(tiles_.read_run), tiles_.length(tiles_.write_run));
    };
    int64_t have = worth(read, write);
    while (have == 0) read /= 2, write /= 2, have = worth(read, write);
    const auto better = [&](int32_t r, int32_t w) {
      const int64_t found = std::max(r, w) > shape_.most ? 0 : worth(r, w);
      if (found <= have) return false;
      read = r, write = w, have = found;
      return true;
    };
    const auto longer = [&](int32_t by) {
      return (read <= write ? better(by * read, write) || better(read, by * write)
                            : better(read, by * write) || better(by * read, write)) ||
             better(by * read, by * write);
    };
    while (longer(2) || longer(4)) {
    }
    choose(read, write);
  }

  // How much of an axis a run has that has room for so much of it: all, if it would be most of it.
  static int32_t part(int64_t size, int32_t room) {
    return size < int64_t{2} * room ? static_cast<int32_t>(size) : room;
  }

  // The axes of a tile with runs of about that length; returns its elements.
  int64_t choose(int32_t read, int32_t write) {
    tiles_.axis_count = tiles_.read_run.count = tiles_.read_rest.count = tiles_.write_run.count =
        tiles_.write_rest.count = 0;
    bool full = true;
    int32_t have = 1;
    for (int i = 0; i < ordered_ && full; ++i) {
      const int32_t extent = part(p_.size[order_[i]], read / have);
      if (extent < 2) break;
      push(tiles_.read_run, add(order_[i], extent));
      have *= extent;
      full = extent == p_.size[order_[i]];
    }
    full = true;
    have = 1;
    int d = p_.ndim - 1;
    for (; d >= 0 && have < write && full; --d) {
      int axis = axis_of(d);
      if (axis < 0) {
        const int32_t extent = part(p_.size[d], write / have);
        if (extent < 2 || tiles_.axis_count == TileList::kMost) break;
        axis = add(d, extent);
        push(tiles_.read_rest, axis);
      } else if (have * tiles_.axis[axis].extent > 2 * write) {
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
      const auto extent = static_cast<int32_t>(std::min(p_.size[d], shape_.most / size));
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
    for (const TileList* list : {&tiles_.read_run, &tiles_.read_rest})
      for (int i = 0; i < list->count; ++i) {
        TileAxis& axis = tiles_.axis[list->axis[i]];
        axis.buffer = step;
        step *= axis.extent;
      }
    tiles_.buffer_size = step;
  }

  // Makes two axes of the one in which the first vector of a run ends, if it ends so in all runs of all tiles.
  void split(const TileList& run) {
    int32_t have = 1;
    int i = 0;
    while (i < run.count && have * tiles_.axis[run.axis[i]].extent <= shape_.vector)
      have *= tiles_.axis[run.axis[i++]].extent;
    const int32_t part = shape_.vector / have;
    if (i == run.count || part == 1 || have * part != shape_.vector || tiles_.axis_count == TileList::kMost) return;
    const int inner = run.axis[i];
    TileAxis& axis = tiles_.axis[inner];
    if (axis.extent % part != 0 || axis.short_extent % part != 0) return;
    const int outer = tiles_.axis_count++;
    tiles_.axis[outer] = {axis.extent / part, axis.short_extent / part, 0, axis.from * part, axis.to * part};
    axis.extent = axis.short_extent = part;
    for (TileList* list : {&tiles_.read_run, &tiles_.read_rest, &tiles_.write_run, &tiles_.write_rest}) {
      const auto at = std::find(list->axis, list->axis + list->count, inner);
      if (at == list->axis + list->count) continue;
      std::copy_backward(at + 1, list->axis + list->count, list->axis + list->count + 1);
      at[1] = static_cast<uint8_t>(outer);
      ++list->count;
    }
    for (int s = 0; s < tiles_.step_count; ++s)
      if (tiles_.step[s].axis == inner) tiles_.step[s].axis = outer;
  }

  // Banks that a warp, or the part of it that is served at once, finds in shared memory.
  int banks() const { return 128 / std::max(shape_.item, 4); }
  // Elements that fill a bank.
  int unit() const { return std::max(1, 4 / shape_.item); }

  // How many steps along each axis the lanes of a warp take that goes over a list and then another.
  void lanes(const TileList& run, const TileList& rest, int32_t* of) const {
    int64_t have = 1;
    for (const TileList* list : {&run, &rest})
      for (int i = 0; i < list->count; ++i) {
        const int32_t extent = tiles_.axis[list->axis[i]].extent;
        const int64_t left = int64_t{banks()} * shape_.vector / have;
        of[list->axis[i]] = have < shape_.vector ? 1 : static_cast<int32_t>(std::clamp<int64_t>(left, 1, extent));
        have *= extent;
      }
  }

  // The banks of a set, in a pattern of 32 bits, and of those that `count` steps lead to from them.
  uint32_t spread(uint32_t set, int32_t step, int32_t count) const {
    const int elements = std::bit_width(static_cast<uint32_t>(unit())) - 1;  // of a bank, as a shift
    int32_t have = 1;
    for (; 2 * have <= count; have *= 2) set |= std::rotl(set, have * step >> elements);
    return set | std::rotl(set, (count - have) * step >> elements);
  }

  // Each axis gets the first step in the buffer that leads the lanes of a warp to new banks when it reads and when it
  // writes; first what fills a bank.
  void lay_out_in_banks() {
    int32_t read[TileList::kMost], write[TileList::kMost], size = 1;
    lanes(tiles_.read_run, tiles_.read_rest, read), lanes(tiles_.write_run, tiles_.write_rest, write);
    const int unit = this->unit();
    uint32_t read_banks = ~uint32_t{0} / (~uint32_t{0} >> (32 - banks())), write_banks = read_banks;
    const auto place = [&](int i) {
      int32_t best = 0, step = size < unit ? size : (size + unit - 1) / unit * unit;
      const int tries = size < unit || (read[i] == 1 && write[i] == 1) ? 1 : banks();
      const int aim = std::popcount(read_banks) * read[i] + std::popcount(write_banks) * write[i];
      for (int k = 0, most = 0; k < tries && most < aim; ++k, step += unit) {
        const int found =
            std::popcount(spread(read_banks, step, read[i])) + std::popcount(spread(write_banks, step, write[i]));
        if (found > most) most = found, best = step;
      }
      read_banks = spread(read_banks, best, read[i]), write_banks = spread(write_banks, best, write[i]);
      tiles_.axis[i].buffer = best;
      size += best * (tiles_.axis[i].extent - 1);
    };
    // By what both kinds of lanes take, reading ones and writing ones; the longest first, as these find steps that fit
    // less easily.
    int order[TileList::kMost], count = 0;
    for (int i = 0; i < tiles_.axis_count; ++i) {
      if (size < unit && read[i] == 1 && write[i] == 1) {
        place(i);
        continue;
      }
      const int kind = (read[i] > 1 ? 0 : 2) + (write[i] > 1 ? 0 : 1);
      const auto lanes = static_cast<int>(std::bit_floor(static_cast<uint32_t>(std::max(read[i], write[i]))));
      order[count++] = (kind * 64 + 32 - lanes) * TileList::kMost + i;
    }
    std::sort(order, order + count);
    for (int k = 0; k < count; ++k) place(order[k] % TileList::kMost);
    tiles_.buffer_size = size;
  }

  void steps() {
    for (int d = 0; d < p_.ndim; ++d) {
      const int axis = axis_of(d);
      const int64_t extent = axis < 0 ? 1 : tiles_.axis[axis].extent;
      if (extent == p_.size[d]) continue;
      const int64_t count = (p_.size[d] + extent - 1) / extent;
      tiles_.step[tiles_.step_count++] = {count, p_.stride[d] * extent, to_[d] * extent, axis};
      tiles_.tiles *= count;
    }
    // Tiles that follow each other are near in one of the arrays.
    const auto distance = [](const TileSteps& s) { return std::min(std::abs(s.from), s.to); };
    std::stable_sort(tiles_.step, tiles_.step + tiles_.step_count,
                     [&](const TileSteps& x, const TileSteps& y) { return distance(x) > distance(y); });
  }

  const PermuteParams& p_;
  const TileShape shape_;
  int64_t to_[kMaxPermuteAxes], elements_ = 1;
  int order_[kMaxPermuteAxes], ordered_ = 0;  // axes that `from` has elements along, the fastest there first
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
