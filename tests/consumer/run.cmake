# Installs BUILD_DIR below WORK_DIR, then configures, builds and runs the project in SOURCE_DIR against it.
file(REMOVE_RECURSE ${WORK_DIR})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD_DIR} --component cpp --prefix ${WORK_DIR}/prefix
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(
  COMMAND
    ${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${WORK_DIR}/build -G ${GENERATOR} -D CMAKE_PREFIX_PATH=${WORK_DIR}/prefix -D
    CMAKE_CXX_COMPILER=${CXX} -D CMAKE_C_COMPILER=${CC} -D WANTED_VERSION=${VERSION} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK_DIR}/build COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${WORK_DIR}/build --output-on-failure
                COMMAND_ERROR_IS_FATAL ANY)
