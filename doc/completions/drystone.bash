# bash completion for drystone(1); made by scripts/make_completions.py

_drystone()
{
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]} options="--help"
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "info explain top steps diff fleet replay sweep view live dry-run plan estimate export anonymize run pages demo mcp help --help --version" -- "$word")
        return
    fi
    case $command$previous in
        live--at) mapfile -t COMPREPLY < <(compgen -W "80% 90% 95%" -- "$word"); return ;;
        live--for) mapfile -t COMPREPLY < <(compgen -W "" -- "$word"); return ;;
    esac
    case $previous in
        help) mapfile -t COMPREPLY < <(compgen -W "info explain top steps diff fleet replay sweep view live dry-run plan estimate export anonymize run pages demo mcp help" -- "$word"); return ;;
        --annotate) mapfile -t COMPREPLY < <(compgen -W "github gitlab" -- "$word"); return ;;
        --at | -a) mapfile -t COMPREPLY < <(compgen -W "oom peak end" -- "$word"); return ;;
        --attention) mapfile -t COMPREPLY < <(compgen -W "flash eager eager-fp32" -- "$word"); return ;;
        --axis) mapfile -t COMPREPLY < <(compgen -W "events time" -- "$word"); return ;;
        --by | -b) mapfile -t COMPREPLY < <(compgen -W "line function module stack category size step" -- "$word"); return ;;
        --checkpointing | -c) mapfile -t COMPREPLY < <(compgen -W "none selective full every sqrt" -- "$word"); return ;;
        --for | -f) mapfile -t COMPREPLY < <(compgen -W "training inference cpu" -- "$word"); return ;;
        --format | -f) mapfile -t COMPREPLY < <(compgen -W "perfetto chrome speedscope folded sqlite csv json svg pickle" -- "$word"); return ;;
        --goal) mapfile -t COMPREPLY < <(compgen -W "fit peak stable" -- "$word"); return ;;
        --malloc | -m) mapfile -t COMPREPLY < <(compgen -W "auto jemalloc tcmalloc mimalloc glibc keep" -- "$word"); return ;;
        --membind) mapfile -t COMPREPLY < <(compgen -W "prefer strict" -- "$word"); return ;;
        --method | -m) mapfile -t COMPREPLY < <(compgen -W "one-level nested none block every sqrt greedy revolve" -- "$word"); return ;;
        --node | -N) mapfile -t COMPREPLY < <(compgen -W "auto none gpu:0 gpu:1 0 1" -- "$word"); return ;;
        --omp-threads) mapfile -t COMPREPLY < <(compgen -W "auto keep" -- "$word"); return ;;
        --only) mapfile -t COMPREPLY < <(compgen -W "pages malloc" -- "$word"); return ;;
        --optimizer | -o) mapfile -t COMPREPLY < <(compgen -W "adamw adam amsgrad sgd momentum adamw-8bit adafactor adagrad rmsprop lion muon" -- "$word"); return ;;
        --place | -p) mapfile -t COMPREPLY < <(compgen -W "torch paged offline" -- "$word"); return ;;
        --precision | -p) mapfile -t COMPREPLY < <(compgen -W "fp32 tf32 amp bf16 mixed megatron" -- "$word"); return ;;
        --profile | -p) mapfile -t COMPREPLY < <(compgen -W "balanced throughput many-workers" -- "$word"); return ;;
        --thp) mapfile -t COMPREPLY < <(compgen -W "auto always advised never keep" -- "$word"); return ;;
        --view) mapfile -t COMPREPLY < <(compgen -W "timeline map" -- "$word"); return ;;
        --without) mapfile -t COMPREPLY < <(compgen -W "expandable gc split" -- "$word"); return ;;
        --accumulation | --across | --allocator | --allocator-conf | --at-growth | --at-most | --at-retries | --batch | --budget | --bytes | --capacity | --card | --communication | --compat | --conf | --context | --data | --device | --driver | --env | --events | --every | --expert | --fail-above | --fail-if | --find | --folder | --gpu-total | --gpus | --grid | --interleave | --key | --lanes | --listen | --lora | --lora-targets | --mask-bytes | --max-size | --memory | --message | --min | --min-gain | --min-size | --need | --page-size | --part | --patience | --pid | --pipeline | --port | --processes-max | --rank | --rank-from | --requests | --root | --rounds | --rows | --runs | --seconds | --seq | --slices | --slots | --snapshot | --stage | --steady-from | --step | --steps | --table-max | --tensor | --threads | --vary | --window | --world-size | --zero) return ;;
    esac
    case $command in
        info) options="--json --help" ;;
        explain) options="--at --message --gpu-total --device --runs --compat --rows --fail-if --baseline --annotate --json --help" ;;
        top) options="--at --by --inverted --stacks --free --map --rows --device --json --help" ;;
        steps) options="--device --capacity --rows --fail-if --baseline --annotate --json --help" ;;
        diff) options="--at --by --min --rows --device --fail-above --fail-if --baseline --annotate --json --help" ;;
        fleet) options="--all --rank-from --no-settings --store --part --merge --threads --output --max-size --json --help" ;;
        replay) options="--conf --place --capacity --find-capacity --compat --across --device --steady-from --check-order --decisions --fail-if --baseline --annotate --json --help" ;;
        sweep) options="--goal --without --min-gain --runs --grid --budget --capacity --place --compat --device --threads --store --part --merge --rows --json --help" ;;
        view) options="--port --output --max-size --quick --terminal --help" ;;
        live) options="--once --for --every --at --at-retries --at-growth --snapshot --at-most --folder --no-driver --json --listen --metrics --lanes --processes-max --help" ;;
        dry-run) options="--card --gpus --vary --find --world-size --rank --steps --patience --values --events --bracket --output --quiet --json --help" ;;
        plan) options="--budget --method --every --slots --window --table-max --compare --curve --timeline --explain --svg --out --lp --judge --json --help" ;;
        estimate) options="--batch --seq --accumulation --precision --optimizer --step --attention --checkpointing --zero --data --tensor --sequence-parallel --pipeline --interleave --stage --context --expert --lora --lora-targets --no-dropout --composed-norm --repeated-kv --index-add --bucket-view --mask-bytes --inference --requests --card --conf --driver --communication --layers --chain --list --json --help" ;;
        export) options="--output --format --at --device --view --axis --slices --min-size --every-point --help" ;;
        anonymize) options="--output --key --hash-all --drop-lines --keep-times --json --help" ;;
        run) options="--node --membind --interleave --malloc --profile --thp --omp-threads --omp-bind --allocator --allocator-conf --on-oom --watch --prove --strict --quiet --dry-run --json --root --help" ;;
        pages) options="--for --need --node --page-size --env --pid --all --json --root --apply --undo --yes --journal --bench --bytes --rounds --only --here --help" ;;
        demo) options="--output --steps --help" ;;
        mcp) options="--memory --seconds --help" ;;
    esac
    case $word in
        -*) mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word") ;;
        *) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    esac
}
complete -o filenames -F _drystone drystone
