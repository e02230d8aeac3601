# The few kinds of target the tree consists of.

# weft_sources(VARIABLE PATTERN…): the sources of a folder; new files join at the next build.
function(weft_sources variable)
  file(GLOB found CONFIGURE_DEPENDS ${ARGN})
  list(SORT found)
  set(${variable} "${found}" PARENT_SCOPE)
endfunction()

# weft_compile_quickly(TARGET)
# For tests and what they stand on. Checks expand to much code that runs once: optimising it takes most of the time that
# its compilation takes, and gains nothing. GoogleTest's headers are compiled once for all of them.
function(weft_compile_quickly target)
  set(targets ${target})
  if(NOT TARGET weft-test-headers)
    add_library(weft-test-headers OBJECT ${PROJECT_SOURCE_DIR}/cmake/test_headers.cpp)
    target_link_libraries(weft-test-headers PRIVATE GTest::gmock GTest::gtest Threads::Threads)
    target_precompile_headers(weft-test-headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
    list(APPEND targets weft-test-headers)
  endif()
  foreach(each IN LISTS targets)
    # CMake would give programs -fPIE and libraries -fPIC, which cannot share compiled headers.
    set_target_properties(${each} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${each} PRIVATE -O0 -fPIC)
    weft_cache_precompiled(${each})
  endforeach()
  target_precompile_headers(${target} REUSE_FROM weft-test-headers)
endfunction()

# weft_compile_headers_once(TARGET [OWN [<header> …]])
# For the libraries of the product: reading the standard's headers is a quarter of what their sources take to compile. One
# compiled form serves all targets; with OWN the target gets one for itself, which flags of its own need, with further
# headers in it. A source still names what it uses: scripts/check-tidy compiles without.
function(weft_compile_headers_once target)
  set(headers <algorithm> <array> <atomic> <chrono> <functional> <map> <memory> <mutex> <optional> <set> <span> <stdexcept>
              <string> <string_view> <thread> <utility> <vector>)
  if("OWN" IN_LIST ARGN)
    list(REMOVE_ITEM ARGN OWN)
    target_precompile_headers(${target} PRIVATE ${headers} ${ARGN})
  else()
    if(NOT TARGET weft-product-headers)
      add_library(weft-product-headers OBJECT ${PROJECT_SOURCE_DIR}/cmake/product_headers.cpp)
      target_link_libraries(weft-product-headers PRIVATE Threads::Threads)
      target_precompile_headers(weft-product-headers PRIVATE ${headers})
      weft_cache_precompiled(weft-product-headers)
    endif()
    target_precompile_headers(${target} REUSE_FROM weft-product-headers)
  endif()
  weft_cache_precompiled(${target})
endfunction()

# weft_cache_precompiled(TARGET): ccache takes compilations with a precompiled header only when told that it may.
function(weft_cache_precompiled target)
  if(WEFT_CCACHE AND CMAKE_CXX_COMPILER_LAUNCHER STREQUAL WEFT_CCACHE)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros;${WEFT_CCACHE}")
  endif()
endfunction()

# weft_add_test(TARGET SOURCES … [LIBRARIES …] [INCLUDES …] [DEPENDS …] [TIMEOUT seconds]
#               [SANITIZER_OPTIONS options] [ARGUMENTS …] [QUICK_ARGUMENTS …])
# One GoogleTest program, run as one ctest test. It leaves its results as JSON in test-results/,
# from which scripts/test counts the cases. With QUICK_ARGUMENTS there is a second ctest test,
# TARGET-quick, the same program with these arguments, which runs in its place under `ctest -C Quick -LE full`.
function(weft_add_test target)
  cmake_parse_arguments(arg "" "TIMEOUT;SANITIZER_OPTIONS" "SOURCES;LIBRARIES;INCLUDES;DEPENDS;ARGUMENTS;QUICK_ARGUMENTS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  # A program may bring its own main; the library's is used only where it does not.
  add_executable(${target} ${arg_SOURCES})
  target_include_directories(${target} PRIVATE ${arg_INCLUDES})
  weft_compile_quickly(${target})
  target_link_libraries(${target} PRIVATE ${arg_LIBRARIES} GTest::gmock GTest::gtest_main GTest::gtest Threads::Threads)
  if(arg_DEPENDS)
    add_dependencies(${target} ${arg_DEPENDS})
  endif()

  set(names ${target})
  set(when always)
  set(results ${PROJECT_BINARY_DIR}/test-results)
  add_test(NAME ${target} COMMAND ${target} --gtest_output=json:${results}/${target}.json ${arg_ARGUMENTS})
  if(arg_QUICK_ARGUMENTS)
    list(APPEND names ${target}-quick)
    set(when full)
    set_tests_properties(${target} PROPERTIES LABELS full)
    add_test(NAME ${target}-quick CONFIGURATIONS Quick
             COMMAND ${target} --gtest_output=json:${results}/${target}-quick.json ${arg_QUICK_ARGUMENTS})
    set_property(GLOBAL APPEND_STRING PROPERTY WEFT_TEST_LIST "${target}-quick quick $<TARGET_FILE:${target}>\n")
  endif()
  set_property(GLOBAL APPEND_STRING PROPERTY WEFT_TEST_LIST "${target} ${when} $<TARGET_FILE:${target}>\n")

  set(asan_options detect_stack_use_after_return=1 ${arg_SANITIZER_OPTIONS})
  set(tsan_options die_after_fork=0 second_deadlock_stack=1 ${arg_SANITIZER_OPTIONS})
  list(JOIN asan_options ":" asan_options)
  list(JOIN tsan_options ":" tsan_options)
  # Tests fork peers that start threads of their own, which the thread sanitizer refuses by default.
  set_tests_properties(${names} PROPERTIES
    TIMEOUT ${arg_TIMEOUT}
    ENVIRONMENT "ASAN_OPTIONS=${asan_options};UBSAN_OPTIONS=print_stacktrace=1;TSAN_OPTIONS=${tsan_options}")
endfunction()

# weft_add_run(NAME TARGET program ARGUMENTS … [TIMEOUT seconds])
# One more ctest test of a program that weft_add_test made, with other arguments. It runs always.
function(weft_add_run name)
  cmake_parse_arguments(arg "" "TARGET;TIMEOUT" "ARGUMENTS" ${ARGN})
  add_test(NAME ${name} COMMAND ${arg_TARGET} --gtest_output=json:${PROJECT_BINARY_DIR}/test-results/${name}.json
                                ${arg_ARGUMENTS})
  get_test_property(${arg_TARGET} ENVIRONMENT environment)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "${environment}")
  set_property(GLOBAL APPEND_STRING PROPERTY WEFT_TEST_LIST "${name} always $<TARGET_FILE:${arg_TARGET}>\n")
endfunction()

# Writes tests.list, one line per test: its name, when it runs (always, full, quick), its program or `script`.
function(weft_write_test_list)
  get_property(lines GLOBAL PROPERTY WEFT_TEST_LIST)
  file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/tests.list" CONTENT "${lines}")
endfunction()

# weft_add_script_test(NAME script [arguments…])
# A script, run as one ctest test, which counts as one case: its exit status is its result.
function(weft_add_script_test name)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES TIMEOUT 300)
  set_property(GLOBAL APPEND_STRING PROPERTY WEFT_TEST_LIST "${name} always script\n")
endfunction()

# weft_add_provider(NAME [LIBRARIES …] [INCLUDES …] [WITH_CORE])
# The plug-in lib/weft/weft-provider-NAME.so from the sources of the current folder, and, where
# there is a tests/ folder, the test program weft-NAME-tests over the same objects. It gets a Debian package of
# its own, weft-provider-NAME, or with WITH_CORE goes into the core's because it needs nothing further.
function(weft_add_provider name)
  cmake_parse_arguments(arg "WITH_CORE" "" "LIBRARIES;INCLUDES" ${ARGN})
  weft_sources(sources "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  if(NOT sources)
    message(STATUS "Provider ${name}: no sources yet, not built")
    return()
  endif()

  add_library(weft-${name}-objects OBJECT ${sources})
  target_include_directories(weft-${name}-objects PUBLIC ${CMAKE_CURRENT_SOURCE_DIR} ${arg_INCLUDES})
  target_link_libraries(weft-${name}-objects PUBLIC weft::weft ${arg_LIBRARIES} Threads::Threads)
  weft_compile_headers_once(weft-${name}-objects)

  add_library(weft-provider-${name} MODULE)
  target_link_libraries(weft-provider-${name} PRIVATE weft-${name}-objects)
  set_target_properties(weft-provider-${name} PROPERTIES
    PREFIX ""
    LINKER_LANGUAGE CXX
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/weft"
    INSTALL_RPATH "$ORIGIN/..")
  set_property(GLOBAL APPEND PROPERTY WEFT_PROVIDER_TARGETS weft-provider-${name})
  if(arg_WITH_CORE)
    set(component core)
  else()
    set(component provider-${name})
    set_property(GLOBAL APPEND PROPERTY WEFT_PROVIDER_PACKAGES ${name})
  endif()
  install(TARGETS weft-provider-${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/weft COMPONENT ${component})

  weft_sources(tests "${CMAKE_CURRENT_SOURCE_DIR}/tests/*.cpp")
  if(WEFT_TESTS AND tests)
    weft_add_test(weft-${name}-tests SOURCES ${tests} LIBRARIES weft-${name}-objects)
  endif()
endfunction()
