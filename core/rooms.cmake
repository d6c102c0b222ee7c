# Sets torch_free_rooms and torch_rooms: the folders of core/ (such as "config/rules"), lowest floor first, without and with torch.
# tools/floors.toml lists them, and tools/check_floors.py checks the sources against it.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/floors.toml)
file(READ ${PROJECT_SOURCE_DIR}/tools/floors.toml floors)
string(FIND "${floors}" "\ntorch = [" torch_begins)
string(SUBSTRING "${floors}" 0 ${torch_begins} all_floors)
string(SUBSTRING "${floors}" ${torch_begins} -1 seeing_torch)
string(REGEX MATCHALL "\"core/[a-z_/]+\"" torch_free_rooms "${all_floors}")
string(REGEX MATCHALL "\"core/[a-z_/]+\"" torch_rooms "${seeing_torch}")
list(REMOVE_ITEM torch_free_rooms ${torch_rooms})
foreach(rooms torch_free_rooms torch_rooms)
  list(TRANSFORM ${rooms} REPLACE "\"core/(.+)\"" "\\1")
endforeach()
