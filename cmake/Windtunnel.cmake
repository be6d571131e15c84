# What every target of this project shares: warnings, include root, and the two functions that declare a library and a test.
option(WT_WERROR "Treat warnings as errors (our presets switch it on)" OFF)

# A folder's sources in batches of eight read their headers once: windtunnel from nothing takes 217 CPU seconds instead of 320 on
# two cores, one changed source more than without. ./windtunnel switches it on; the presets leave it off, so that a source that
# forgets an include is found.
option(WT_UNITY "Compile the sources of a folder together" OFF)

add_library(wt_options INTERFACE)
target_include_directories(wt_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(wt_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow=local>)
set(WT_GCC $<COMPILE_LANG_AND_ID:CXX,GNU>)
# GCC 12 at -O3 warns of overlaps and overflows inside its own std::string (GCC bug 105651); both are false.
target_compile_options(wt_options INTERFACE $<${WT_GCC}:-Wno-restrict> $<${WT_GCC}:-Wno-stringop-overflow>)
# GCC collects its garbage from 128 MiB on; most sources of ours end below 512 MiB, up to a tenth sooner without.
target_compile_options(wt_options INTERFACE $<${WT_GCC}:--param=ggc-min-heapsize=524288>)
if(WT_WERROR)
  target_compile_options(wt_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()

# wt_library(NAME SOURCES a.cpp b.cpp LINK other_lib)
function(wt_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC wt_options ${arg_LINK})
endfunction()

# For what runs once a command, such as reading, reporting and the command line: compiled in two thirds of the time of
# -O3.
set(WT_COLD $<$<CONFIG:Release>:-O1>)
# For tests, which spend their time in what they call: compiled in half of the time of -O1. Those of property_sim draw and compute much
# themselves.
set(WT_TESTS $<$<CONFIG:Release>:-O0>)

# wt_precompiled(NAME LINK other_lib HEADERS <a> <b>): owns a precompiled header. Targets with the same options use it, too:
# wt_use_pch(... NAME).
function(wt_precompiled name)
  cmake_parse_arguments(arg "" "" "LINK;HEADERS" ${ARGN})
  file(CONFIGURE OUTPUT ${name}.cpp CONTENT "")
  wt_library(${name} SOURCES ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp LINK ${arg_LINK})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
endfunction()

# What nearly every source of ours includes. Not nlohmann/json or CLI11: sources that do without them would pay for them. GCC
# takes the header at another -O level than its own, and gives the same code as with a header of that level.
wt_precompiled(wt_pch LINK fmt::fmt HEADERS <fmt/format.h> <algorithm> <array> <cmath> <cstdint> <filesystem> <fstream>
  <functional> <map> <memory> <numeric> <optional> <set> <sstream> <string> <variant> <vector>)

# wt_use_pch(NAME [OWNER]): the target uses the precompiled header of the owner, or of wt_pch.
function(wt_use_pch name)
  set(owners wt_pch ${ARGN})
  list(GET owners -1 owner)
  target_precompile_headers(${name} REUSE_FROM ${owner})
  # A precompiled header forgets the pragmas by which GCC's own headers silence these inside std::string.
  target_compile_options(${name} PRIVATE $<${WT_GCC}:-Wno-array-bounds> $<${WT_GCC}:-Wno-stringop-overread>)
endfunction()

# wt_folder(FOLDER [COLD] LINK other_lib): every source of the folder, and of no folder inside it, as one library: sim/cost/fit is
# wt_sim_cost_fit. EXCEPT leaves out sources that need what the rest does not; COLD: see WT_COLD;
# PRECOMPILED: the owner of a precompiled header in place of wt_pch.
function(wt_folder folder)
  cmake_parse_arguments(arg "COLD" "PRECOMPILED" "LINK" ${ARGN})
  string(REPLACE "/" "_" name ${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cpp)
  wt_library(wt_${name} SOURCES ${sources} LINK ${arg_LINK})
  set_target_properties(wt_${name} PROPERTIES UNITY_BUILD ${WT_UNITY})
  wt_use_pch(wt_${name} ${arg_PRECOMPILED})
  if(arg_COLD)
    target_compile_options(wt_${name} PRIVATE ${WT_COLD})
  endif()
endfunction()

# A search makes and frees millions of small ops. The C library's allocator takes half of its time to find room for them.
add_library(wt_malloc INTERFACE)
find_library(WT_MIMALLOC mimalloc)
if(WT_MIMALLOC AND NOT CMAKE_CXX_FLAGS MATCHES "sanitize")
  target_link_libraries(wt_malloc INTERFACE ${WT_MIMALLOC})
endif()

# wt_test(NAME [NIGHTLY] [IN EXECUTABLE] SOURCES a.cpp LINK lib): one ctest entry of these Catch2 sources, run with the source tree as
# working folder. Tests with the same EXECUTABLE are linked once; each runs in a process of its own, by the tags that Catch2
# makes of file names. Without IN the executable has the test's name: for what links, defines or exports what others must not.
# NIGHTLY: a second entry, NAME_nightly, has all cases of a test that tries fewer in CI (tests/fixtures/nightly.hpp), and those with
# the tag [.nightly].
function(wt_test name)
  cmake_parse_arguments(arg "NIGHTLY" "IN" "SOURCES;LINK" ${ARGN})
  set(executable ${name})
  if(arg_IN)
    set(executable ${arg_IN})
  endif()
  if(NOT TARGET ${executable})
    add_executable(${executable})
    target_link_libraries(${executable} PRIVATE wt_options wt_catch)
    if(arg_IN STREQUAL property_sim)
      target_compile_options(${executable} PRIVATE ${WT_COLD})
    elseif(arg_IN)
      target_precompile_headers(${executable} REUSE_FROM wt_catch_pch)
      target_compile_options(${executable} PRIVATE ${WT_TESTS})
    endif()
  endif()
  set(chosen)
  set(at_night)  # hidden from CI
  if(arg_IN)
    foreach(source ${arg_SOURCES})
      get_filename_component(stem ${source} NAME_WE)
      file(READ ${source} text)
      string(REGEX MATCHALL "\n(TEMPLATE_)?TEST_CASE" cases "${text}")
      string(REGEX MATCHALL "\\.nightly" hidden "${text}")
      list(LENGTH cases case_count)
      list(LENGTH hidden hidden_count)
      if(hidden)
        list(APPEND at_night "[#${stem}][.nightly]")
      endif()
      if(hidden_count LESS case_count OR NOT arg_NIGHTLY)  # Catch2 fails where a choice has no case
        list(APPEND chosen "[#${stem}]~[.]")  # as without a choice: no hidden case
      endif()
      get_property(stems TARGET ${executable} PROPERTY WT_STEMS)
      if(stem IN_LIST stems)
        message(FATAL_ERROR "${name}: found ${stem}.cpp twice in ${executable}, where file names tell tests apart; choose another executable")
      endif()
      set_property(TARGET ${executable} APPEND PROPERTY WT_STEMS ${stem})
    endforeach()
    list(JOIN chosen "," chosen)
    list(PREPEND at_night ${chosen})
    list(JOIN at_night "," at_night)
    set(options --filenames-as-tags --warn NoTests --durations yes)
    list(PREPEND chosen ${options})
    list(PREPEND at_night ${options})
  endif()
  if(arg_IN AND WT_UNITY AND NOT arg_IN STREQUAL unit_trainer)  # some of LibTorch's headers define Catch2's macros
    set_property(TARGET ${executable} APPEND PROPERTY WT_TOGETHER ${arg_SOURCES})
    set_property(DIRECTORY APPEND PROPERTY WT_TOGETHER ${executable})
  else()
    target_sources(${executable} PRIVATE ${arg_SOURCES})
  endif()
  target_link_libraries(${executable} PRIVATE ${arg_LINK})
  add_test(NAME ${name} COMMAND ${executable} ${chosen} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  if(arg_NIGHTLY)
    add_test(NAME ${name}_nightly COMMAND ${executable} ${at_night} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${name}_nightly PROPERTIES LABELS nightly ENVIRONMENT WT_NIGHTLY=1 TIMEOUT 7200)
  endif()
endfunction()

# wt_compile_tests(): compiles the sources of the executables that tests share six at a time, which takes a third of the time. A
# source is in a namespace of its own, after the headers of all six, so that its names are its own, too. Sources that open a namespace
# or define a macro are compiled alone.
function(wt_compile_tests)
  get_property(executables DIRECTORY PROPERTY WT_TOGETHER)
  list(REMOVE_DUPLICATES executables)
  foreach(executable ${executables})
    get_property(sources TARGET ${executable} PROPERTY WT_TOGETHER)
    set(number 0)
    set(together)
    foreach(source ${sources} last)
      if(NOT source STREQUAL last)
        file(STRINGS ${source} alone REGEX "^(namespace [A-Za-z:]+ {|#define|#if|template <>)")
        if(alone)
          target_sources(${executable} PRIVATE ${source})
          continue()
        endif()
        list(APPEND together ${source})
      endif()
      list(LENGTH together count)
      if(count EQUAL 0 OR (count LESS 6 AND NOT source STREQUAL last))
        continue()
      endif()
      set(headers)
      set(bodies)
      foreach(each ${together})
        file(STRINGS ${each} included REGEX "^#include")
        list(APPEND headers ${included})
        get_filename_component(stem ${each} NAME_WE)
        get_filename_component(path ${each} ABSOLUTE)
        list(APPEND bodies "namespace of_${stem} {\n#include \"${path}\"\n}")
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})  # its headers are known from now
      endforeach()
      list(REMOVE_DUPLICATES headers)
      list(JOIN headers "\n" headers)
      list(JOIN bodies "\n" bodies)
      file(CONFIGURE OUTPUT ${executable}_${number}.cpp CONTENT "${headers}\n${bodies}\n" @ONLY)
      target_sources(${executable} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/${executable}_${number}.cpp)
      math(EXPR number "${number} + 1")
      set(together)
    endforeach()
  endforeach()
endfunction()

# wt_calls_windtunnel(EXECUTABLE): its tests run the windtunnel command (tests/fixtures/windtunnel.hpp).
function(wt_calls_windtunnel name)
  target_compile_definitions(${name} PRIVATE WT_PROGRAM="$<TARGET_FILE:windtunnel>")
  add_dependencies(${name} windtunnel)
endfunction()

# wt_python_test(NAME SCRIPT a.py ARGS ... ENVIRONMENT A=b): one ctest entry that runs a script of tests/python with PyTorch's
# and Hugging Face's packages (python-environment.sh), the source tree as working folder. Where they cannot be had the test is
# reported as skipped; the test python_environment makes them first. LM_EVAL: with lm-eval, which python_lm_eval_environment makes.
function(wt_python_test name)
  cmake_parse_arguments(arg "LM_EVAL" "SCRIPT" "ARGS;ENVIRONMENT" ${ARGN})
  set(run run)
  set(environment python_environment)
  if(arg_LM_EVAL)
    set(run run-lm-eval)
    set(environment python_lm_eval_environment)
  endif()
  add_test(NAME ${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    COMMAND ${CMAKE_SOURCE_DIR}/cmake/python-environment.sh ${run} "${WT_LIBTORCH}" ${CMAKE_CURRENT_SOURCE_DIR}/${arg_SCRIPT} ${arg_ARGS})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 FIXTURES_REQUIRED ${environment})
  set_property(TEST ${name} PROPERTY ENVIRONMENT OMP_NUM_THREADS=1 ${arg_ENVIRONMENT})  # other tests run beside it
endfunction()
