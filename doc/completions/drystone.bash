# bash completion for drystone(1)

_drystone()
{
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]} options="--help"
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "info replay demo help --help --version" -- "$word")
        return
    fi
    case $previous in
        help) mapfile -t COMPREPLY < <(compgen -W "info replay demo" -- "$word"); return ;;
        --conf | -c | --compat | --capacity | --device | -d | --steps) return ;;
    esac
    case $command in
        info) options="--json --help" ;;
        replay) options="--conf --compat --capacity --find-capacity --device --decisions
            --json --help" ;;
        demo) options="--output --steps --help" ;;
    esac
    case $word in
        -*) mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word") ;;
        *) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    esac
}
complete -o filenames -F _drystone drystone
