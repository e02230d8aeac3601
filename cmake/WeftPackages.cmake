# The Debian packages, made by `cpack` in the build folder: the core with the providers that need nothing
# further, one package for each other provider, the development files, the tools. What a package depends on is
# read from its files, so that the needs of one provider are no other package's.

if(NOT TARGET weft)
  return()
endif()

get_property(provider_packages GLOBAL PROPERTY WEFT_PROVIDER_PACKAGES)
set(library_package libweft${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME weft)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_VENDOR "the weft authors")
set(CPACK_PACKAGE_CONTACT "the weft authors <weft@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                                WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL core dev)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
# CPack's own text, so that it does not put one summary in front of each package's.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_NAME} built using CMake")

# weft_package(COMPONENT NAME SECTION SUMMARY TEXT)
macro(weft_package component name section summary text)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${text}")
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} RENAME copyright
          COMPONENT ${component})
endmacro()

weft_package(core ${library_package} libs "one messaging API over verbs, libfabric, UCX and TCP"
  "Endpoints, memory regions and completion queues with one written contract, over a provider chosen at run time. This package holds the library and the provider that runs everywhere, plain TCP.")

weft_package(dev libweft-dev libdevel "development files of weft"
  "Headers, the CMake package, pkg-config files, and the engine that providers of one's own are built on.")
set(CPACK_COMPONENT_DEV_DEPENDS core)

if(WEFT_TESTS OR WEFT_BENCH OR WEFT_TOOLS)
  list(APPEND CPACK_COMPONENTS_ALL tools)
  weft_package(tools weft-tools utils "diagnosis, conformance suite and benchmark of weft"
    "weft-info says what can run on this machine and why the rest cannot; weft-conformance checks a provider against the contract; weft-perf measures.")
  set(CPACK_COMPONENT_TOOLS_DEPENDS core)
endif()

foreach(provider IN LISTS provider_packages)
  list(APPEND CPACK_COMPONENTS_ALL provider-${provider})
  weft_package(provider-${provider} weft-provider-${provider} libs "weft's provider ${provider}"
    "Programs that use weft find it once it is installed; weft-info tells whether it can run here.")
  string(TOUPPER provider-${provider} upper)
  set(CPACK_COMPONENT_${upper}_DEPENDS core)
endforeach()

include(CPack)
