// The table of what is measured, and the targets.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "measure.h"

namespace tropical::bench {

enum class Quantity {
  share,    // speed of the subject over the register loop's, higher is better
  speedup,  // speed of the subject over the base's, higher is better
  ratio,    // time of the subject over the base's, lower is better
};

// What a row compares. It owns its data through the functions.
struct Comparison {
  Timed base, subject;
  std::function<void()> check;  // of the subject's result; throws if it is wrong
};

struct Row {
  std::string name;
  Quantity quantity = Quantity::share;
  double target = 0;  // 0: none
  std::function<Comparison()> make;
  std::string isa = {};  // forced while the row runs; "": the one in use
  int threads = 1;       // that the row needs
};

std::vector<Row> all_rows();
// Certified filtering, in filter_rows.cpp.
void add_filter(std::vector<Row>& rows);

}  // namespace tropical::bench
