# Programs find their data beside bin, in share/windtunnel (configs/base/installed.hpp). A build folder has links there. Two
# components are installed: `windtunnel`, the program with its data, and `python`, the package that calls it (pyproject.toml):
#   cmake --install build --component windtunnel --prefix /opt/windtunnel
set(data share/windtunnel)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/${data}/tests)
foreach(folder configs tests/data)
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${folder} ${CMAKE_BINARY_DIR}/${data}/${folder} SYMBOLIC)
endforeach()

install(TARGETS windtunnel RUNTIME DESTINATION bin COMPONENT windtunnel)
install(DIRECTORY configs DESTINATION ${data} COMPONENT windtunnel
  REGEX "configs/(base|files|machine)$" EXCLUDE PATTERN CMakeLists.txt EXCLUDE)
foreach(file liger_h100/speed_ms.csv change_points/golden.json)  # of the gate's selftests
  get_filename_component(folder ${file} DIRECTORY)
  install(FILES tests/data/${file} DESTINATION ${data}/tests/data/${folder} COMPONENT windtunnel)
endforeach()
install(DIRECTORY reports/schemas DESTINATION ${data} COMPONENT windtunnel)
install(FILES LICENSE NOTICE DESTINATION ${data} COMPONENT windtunnel)
install(CODE "execute_process(COMMAND git -C ${CMAKE_SOURCE_DIR} describe --always --dirty --abbrev=12 --exclude=*
  OUTPUT_FILE \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${data}/commit ERROR_QUIET)" COMPONENT windtunnel)
# Libraries that the wheel takes along have licences of their own.
install(CODE "execute_process(COMMAND ${CMAKE_SOURCE_DIR}/cmake/licences.sh $<TARGET_FILE:windtunnel>
  \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${data}/licences COMMAND_ERROR_IS_FATAL ANY)" COMPONENT python)
install(DIRECTORY planner/python/windtunnel/ DESTINATION . COMPONENT python FILES_MATCHING PATTERN *.py)
