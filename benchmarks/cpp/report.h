// The summary in Markdown.
#pragma once
#include <ostream>
#include <string>
#include <vector>

#include "rows.h"

namespace tropical::bench {

struct Outcome {
  std::string name;
  Quantity quantity = Quantity::share;
  double target = 0;
  Spread value;
  double base_rate = 0, rate = 0;  // pairs per second; 0 where pairs mean nothing
  double seconds = 0;              // per run of the subject
};

// ">= 90 %", "<= 1.20", ">= 1.90x"; "" without a target.
std::string target_text(const Outcome& outcome);
// "met", "missed"; "" without a target.
std::string verdict(const Outcome& outcome);
// The table, then the rows that could not be measured, as they are given.
void write_report(std::ostream& out, const std::vector<Outcome>& outcomes, const std::vector<std::string>& unmeasured);

}  // namespace tropical::bench
