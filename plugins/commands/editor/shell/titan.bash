# Completion of titan for bash. It asks `titan __complete`, so commands and options of all installed plugins are offered.
# Print it by `titan completion bash`.

_titan() {
  local line=${COMP_LINE:0:COMP_POINT} word i
  local -a words=()
  # bash splits words at '=' and ':' as well; the parts between blanks belong together
  for ((i = 0; i <= COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if [[ ${#words[@]} == 0 || $line == [[:space:]]* ]]; then
      line=${line#"${line%%[![:space:]]*}"}
      words+=("")
    fi
    ((i == COMP_CWORD)) && word=$line
    words[-1]+=$word
    line=${line#"$word"}
  done

  local program=${words[0]/#\~/$HOME}
  local -a lines=()
  mapfile -t lines < <("$program" __complete -- "${words[@]:1}" 2>/dev/null)
  COMPREPLY=()
  case ${lines[0]-} in
    *files*) compopt -o default ;;
    *folders*) compopt -o dirnames ;;
  esac
  [[ ${lines[0]-} == *continues* ]] && compopt -o nospace

  local current=${words[-1]} begin=""
  [[ $current == *[=:]* ]] && begin=${current%"${current##*[=:]}"}  # bash replaces only what follows '=' or ':'
  for word in "${lines[@]:1}"; do
    word=${word%%$'\t'*}
    COMPREPLY+=("$(printf '%q' "${word#"$begin"}")")
  done
}

complete -F _titan titan
