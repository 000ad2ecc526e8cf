// The choice of the instruction set, for code with a dispatch of its own.
#pragma once

namespace tropical::cpu {

// Before the first dispatch: what the environment asks for.
void start_isa();

}  // namespace tropical::cpu
