// Products small enough that everything around the register tiles counts: their tiles are chosen once for a batch.
#pragma once
#include <array>

#include "cpu/loops.h"

namespace tropical::cpu {

class SmallPlan {
 public:
  // Empty if the products do not qualify: operands in place, values only, at most kMaxTiles tiles.
  SmallPlan(const Product& like);
  explicit operator bool() const { return count_ > 0; }

  // `count` members that lie so many elements apart, whose operands have the strides of `like`.
  void run(const char* a, const char* b, char* c, int64_t count, int64_t a_step, int64_t b_step, int64_t c_step) const;

 private:
  static constexpr int kMaxTiles = 64;
  struct Step {
    TileFn fn;
    int64_t a, b, c;  // byte offsets
    int valid;
  };
  std::array<Step, kMaxTiles> steps_;
  int count_ = 0;
  TileCall call_{};
};

}  // namespace tropical::cpu
