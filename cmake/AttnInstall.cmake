# Install tree and exported package: find_package(AttnMLIR).
include(CMakePackageConfigHelpers)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ ${PROJECT_BINARY_DIR}/include/ DESTINATION include
        FILES_MATCHING PATTERN "*.h" PATTERN "*.inc" PATTERN "*.td")
# PREFIX/python is what PYTHONPATH names; the package finds PREFIX/lib beside it.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/attn_mlir DESTINATION python FILES_MATCHING PATTERN "*.py")
install(EXPORT AttnMLIRTargets FILE AttnMLIRTargets.cmake NAMESPACE Attn:: DESTINATION lib/cmake/AttnMLIR)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/AttnMLIRConfig.cmake.in
  ${PROJECT_BINARY_DIR}/AttnMLIRConfig.cmake INSTALL_DESTINATION lib/cmake/AttnMLIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/AttnMLIRConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/AttnMLIRConfig.cmake ${PROJECT_BINARY_DIR}/AttnMLIRConfigVersion.cmake
        DESTINATION lib/cmake/AttnMLIR)
