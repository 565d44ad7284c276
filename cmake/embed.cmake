# Writes OUT, a C file that holds the files FILES (comma-separated, *.yaml) of the folder DIR as
# the array declared in src/target/embedded.h.

string(REPLACE "," ";" files "${FILES}")
list(TRANSFORM files REPLACE "\\.yaml$" "" OUTPUT_VARIABLE names)
list(SORT names)

set(arrays "")
set(rows "")
set(count 0)
foreach(name IN LISTS names)
  file(READ "${DIR}/${name}.yaml" hex HEX)
  string(LENGTH "${hex}" len)
  math(EXPR len "${len} / 2")
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}") # 16 bytes a line
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND arrays "static const unsigned char text_${count}[] = {\n${bytes}0};\n")
  string(APPEND rows "    {\"${name}\", (const char *)text_${count}, ${len}},\n")
  math(EXPR count "${count} + 1")
endforeach()

file(WRITE "${OUT}" "/* Made by cmake/embed.cmake. */
#include \"target/embedded.h\"

${arrays}
const cs_embedded cs_embedded_targets[] = {
${rows}    {0, 0, 0},
};
const size_t cs_embedded_count = ${count};
")
