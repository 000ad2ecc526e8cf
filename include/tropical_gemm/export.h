// Symbol visibility of the shared library: everything is hidden unless marked.
#pragma once

#define TROPICAL_API __attribute__((visibility("default")))
