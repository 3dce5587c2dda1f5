"""Tab completion of all programs, for bash and zsh: what `PROGRAM --help` and `PROGRAM COMMAND --help` list.

The first word completes to a command, a word that begins with - to a flag, and the value of a flag to one of its
choices; all others to files. The shell asks for each help once and keeps it.
"""

from .commandline_help import PROGRAMS

SCRIPT = r"""_entrostat() {
    local program=$1 word=$2 flag=$3 command="" key help="" words=""
    if [ "$COMP_CWORD" -gt 1 ]; then
        case ${COMP_WORDS[1]} in -*) ;; *) command=${COMP_WORDS[1]} ;; esac
    fi
    key=_entrostat_$(printf '%s' "${program##*/}_$command" | tr -c 'a-z' '_')
    eval "help=\$$key"
    if [ -z "$help" ]; then
        help=$(COLUMNS=120 "$program" ${command:+"$command"} --help 2>/dev/null)
        eval "$key=\$help"
    fi
    case $word in
        -*) words=$(printf '%s' "$help" | grep -oE -e '--[a-z][a-zA-Z0-9._-]*' | sort -u) ;;
        *)  case $COMP_CWORD/$flag in
                1/*) words=$(printf '%s' "$help" | sed -n '/^Other programs/q; s/^  \([a-z-]*\)  .*/\1/p') ;;
                */--*) words=$(printf '%s' "$help" | sed -n "s/.* $flag {\([^}]*\)}.*/\1/p" | tr ',' ' ') ;;
            esac ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}
[ -z "$ZSH_VERSION" ] || { autoload -U +X compinit bashcompinit && compinit && bashcompinit; }
complete -o default -F _entrostat """
SCRIPT += " ".join(PROGRAMS)
