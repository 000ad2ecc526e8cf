// The bytes that a fuzzer hands over, read as numbers; 0 once they are used up.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace tropical::fuzz {

class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : next_(data), end_(data + size) {}

  uint8_t byte() { return next_ == end_ ? 0 : *next_++; }
  // One of 0 ... n - 1, n <= 256.
  int below(int n) { return byte() % n; }
  bool one_in(int n) { return below(n) == n - 1; }
  template <class List>
  auto pick(const List& list) {
    return *(std::begin(list) + below(static_cast<int>(std::size(list))));
  }
  uint64_t word() {
    uint64_t w = 0;
    for (int i = 0; i < 8; ++i) w = w << 8 | byte();
    return w;
  }

 private:
  const uint8_t* next_;
  const uint8_t* end_;
};

}  // namespace tropical::fuzz
