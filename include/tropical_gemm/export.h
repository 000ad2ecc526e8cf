// Symbol visibility of the shared library: everything is hidden unless marked.
#pragma once

#if defined(_WIN32)
#if defined(TROPICAL_GEMM_BUILD)
#define TROPICAL_API __declspec(dllexport)
#else
#define TROPICAL_API __declspec(dllimport)
#endif
#else
#define TROPICAL_API __attribute__((visibility("default")))
#endif
