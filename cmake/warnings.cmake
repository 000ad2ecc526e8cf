# tg_warnings(target): the project's warnings, errors where TG_WERROR is on.
# -Wno-restrict: g++ 12 reports std::string's operator+ falsely (GCC bug 105651).
function(tg_warnings target)
  target_compile_options(
    ${target}
    PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
            $<$<CXX_COMPILER_ID:GNU>:$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>> $<$<BOOL:${TG_WERROR}>:-Werror>)
endfunction()
