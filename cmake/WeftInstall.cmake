# What `cmake --install` puts where, in the components of which the Debian packages are made: core, dev, tools,
# and provider-NAME for each provider with needs of its own. Nothing installed knows where it was installed to:
# the tree can be moved as a whole.
include(CMakePackageConfigHelpers)

if(NOT TARGET weft)
  return()
endif()

# The development files are one package, found by name.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME dev)
set(weft_cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/weft)

install(TARGETS weft EXPORT weft-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT core NAMELINK_COMPONENT dev)
install(TARGETS weft-engine EXPORT weft-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/api/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
file(GLOB engine_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/providers/common/*.hpp)
install(FILES ${engine_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft/engine)

# The examples, to be built from there: `g++ -std=c++20 hello.cpp $(pkg-config --cflags --libs weft)`.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libweft-dev
        FILES_MATCHING PATTERN "*.cpp" PATTERN "*.hpp" PATTERN "provider/CMakeLists.txt" PATTERN tests EXCLUDE)

install(EXPORT weft-targets NAMESPACE weft:: FILE weftTargets.cmake DESTINATION ${weft_cmake_folder})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/weftConfig.cmake.in ${PROJECT_BINARY_DIR}/weftConfig.cmake
                              INSTALL_DESTINATION ${weft_cmake_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weftConfig.cmake ${PROJECT_BINARY_DIR}/weftConfigVersion.cmake
        DESTINATION ${weft_cmake_folder})

# From the pkg-config files up to the prefix; the paths in them start there.
file(RELATIVE_PATH weft_up_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" weft_up_to_prefix ${weft_up_to_prefix})
foreach(name weft weft-engine)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
