# Installed files: headers, the library, and the package that find_package(TropicalGemm) reads.
install(TARGETS tropical_gemm EXPORT TropicalGemmTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cpp)
if(TARGET tropical_gemm_cuda)
  install(TARGETS tropical_gemm_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cpp)
endif()
install(DIRECTORY include/tropical_gemm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT cpp
        FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_BINARY_DIR}/include/tropical_gemm/version.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tropical_gemm COMPONENT cpp)
set(TG_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/TropicalGemm)
install(EXPORT TropicalGemmTargets NAMESPACE TropicalGemm:: DESTINATION ${TG_PACKAGE_DIR} COMPONENT cpp)
configure_package_config_file(cmake/TropicalGemmConfig.cmake.in ${PROJECT_BINARY_DIR}/TropicalGemmConfig.cmake
                              INSTALL_DESTINATION ${TG_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TropicalGemmConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/TropicalGemmConfig.cmake ${PROJECT_BINARY_DIR}/TropicalGemmConfigVersion.cmake
        DESTINATION ${TG_PACKAGE_DIR} COMPONENT cpp)
