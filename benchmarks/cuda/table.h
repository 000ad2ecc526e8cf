// The table of goals: one line for all measurements that one goal is set for, with the best and the worst of them.
#pragma once
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace tropical::cuda {

class Table {
 public:
  enum Kind { at_least, at_most };
  void add(const std::string& what, double value, Kind kind, double goal, const char* unit) {
    for (Line& line : lines_)
      if (line.what == what) {
        line.low = std::min(line.low, value), line.high = std::max(line.high, value);
        return;
      }
    lines_.push_back({what, value, value, kind, goal, unit});
  }
  void print() const {
    std::printf("\n| row | measured | goal | |\n|---|---|---|---|\n");
    for (const Line& l : lines_) {
      const bool met = l.kind == at_least ? l.low >= l.goal : l.high <= l.goal;
      std::printf("| %s | %.4g to %.4g %s | %s %g | %s |\n", l.what.c_str(), l.low, l.high, l.unit,
                  l.kind == at_least ? ">=" : "<=", l.goal, met ? "met" : "**missed**");
    }
  }

 private:
  struct Line {
    std::string what;
    double low, high;
    Kind kind;
    double goal;
    const char* unit;
  };
  std::vector<Line> lines_;
};

}  // namespace tropical::cuda
