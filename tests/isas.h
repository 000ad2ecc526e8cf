// Tests on every instruction set that this machine has.
#pragma once
#include <string>

#include "tropical_gemm/matmul.h"

namespace tropical::testing {

// The instruction set is a setting of the process: leave the best one behind.
struct IsaScope {
  ~IsaScope() { set_isa(""); }
};

template <class Test>
void on_each_isa(const Test& test) {
  const IsaScope restore;
  for (const std::string& isa : build_info().isas) {
    set_isa(isa);
    test(isa);
  }
}

}  // namespace tropical::testing
