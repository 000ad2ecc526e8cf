# Highway: the installed one, or a pinned release that CMake fetches.
find_package(hwy QUIET CONFIG)
if(NOT TARGET hwy::hwy)
  find_path(TG_HWY_INCLUDE hwy/highway.h)
  find_library(TG_HWY_LIBRARY hwy)
  if(TG_HWY_INCLUDE AND TG_HWY_LIBRARY)
    add_library(hwy::hwy UNKNOWN IMPORTED)
    set_target_properties(hwy::hwy PROPERTIES IMPORTED_LOCATION ${TG_HWY_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES
                                                                                   ${TG_HWY_INCLUDE})
  else()
    include(FetchContent)
    set(HWY_ENABLE_TESTS OFF CACHE BOOL "" FORCE)
    set(HWY_ENABLE_EXAMPLES OFF CACHE BOOL "" FORCE)
    set(HWY_ENABLE_CONTRIB OFF CACHE BOOL "" FORCE)
    set(HWY_ENABLE_INSTALL OFF CACHE BOOL "" FORCE)
    FetchContent_Declare(
      highway URL https://github.com/google/highway/archive/refs/tags/1.2.0.tar.gz
      URL_HASH SHA256=7e0be78b8318e8bdbf6fa545d2ecb4c90f947df03f7aadc42c1967f019e63343)
    FetchContent_MakeAvailable(highway)
    add_library(hwy::hwy ALIAS hwy)
  endif()
endif()

find_package(OpenMP REQUIRED COMPONENTS CXX)
