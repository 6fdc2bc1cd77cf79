# bash completion for drystone(1); made by scripts/make_completions.py

_drystone()
{
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]} options="--help"
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "info explain top steps diff fleet replay sweep view live dry-run fit plan estimate export anonymize run pages demo mcp help --help --version" -- "$word")
        return
    fi
    case "$command $previous" in
        "help help") mapfile -t COMPREPLY < <(compgen -W "info explain top steps diff fleet replay sweep view live dry-run fit plan estimate export anonymize run pages demo mcp help" -- "$word"); return ;;
        "replay -p" | "replay --place")
            mapfile -t COMPREPLY < <(compgen -W "torch paged offline" -- "$word"); return ;;
        "sweep -p" | "sweep --place")
            mapfile -t COMPREPLY < <(compgen -W "torch paged" -- "$word"); return ;;
        "run --membind")
            mapfile -t COMPREPLY < <(compgen -W "prefer strict" -- "$word"); return ;;
        "export -f" | "export --format")
            mapfile -t COMPREPLY < <(compgen -W "perfetto folded sqlite csv json pickle" -- "$word"); return ;;
        "pages --only")
            mapfile -t COMPREPLY < <(compgen -W "pages malloc" -- "$word"); return ;;
        "explain -a" | "explain --at" | "top -a" | "top --at" | "diff -a" | "diff --at" | "export -a" | "export --at")
            mapfile -t COMPREPLY < <(compgen -W "oom peak end" -- "$word"); return ;;
        "plan --method")
            mapfile -t COMPREPLY < <(compgen -W "one-level nested none block every sqrt greedy revolve" -- "$word"); return ;;
        "estimate --checkpointing")
            mapfile -t COMPREPLY < <(compgen -W "none selective full every sqrt" -- "$word"); return ;;
        "top -b" | "top --by")
            mapfile -t COMPREPLY < <(compgen -W "line function module stack category size step" -- "$word"); return ;;
        "diff -b" | "diff --by")
            mapfile -t COMPREPLY < <(compgen -W "line function module category size" -- "$word"); return ;;
        "explain --annotate" | "steps --annotate" | "diff --annotate" | "replay --annotate")
            mapfile -t COMPREPLY < <(compgen -W "github gitlab" -- "$word"); return ;;
        "estimate --precision")
            mapfile -t COMPREPLY < <(compgen -W "fp32 tf32 amp bf16 mixed megatron" -- "$word"); return ;;
        "estimate --attention")
            mapfile -t COMPREPLY < <(compgen -W "flash eager eager-fp32" -- "$word"); return ;;
        "sweep --goal")
            mapfile -t COMPREPLY < <(compgen -W "fit peak stable" -- "$word"); return ;;
        "sweep --without")
            mapfile -t COMPREPLY < <(compgen -W "expandable gc split" -- "$word"); return ;;
        "run --profile")
            mapfile -t COMPREPLY < <(compgen -W "balanced throughput many-workers" -- "$word"); return ;;
        "run -N" | "run --node" | "pages --node")
            mapfile -t COMPREPLY < <(compgen -W "auto none gpu:0 gpu:1 0 1" -- "$word"); return ;;
        "run --omp-threads")
            mapfile -t COMPREPLY < <(compgen -W "auto keep" -- "$word"); return ;;
        "run --malloc")
            mapfile -t COMPREPLY < <(compgen -W "auto jemalloc tcmalloc mimalloc glibc keep" -- "$word"); return ;;
        "run --thp")
            mapfile -t COMPREPLY < <(compgen -W "auto always advised never keep" -- "$word"); return ;;
        "estimate --optimizer")
            mapfile -t COMPREPLY < <(compgen -W "adamw adam amsgrad sgd momentum adamw-8bit adafactor adagrad rmsprop lion muon" -- "$word"); return ;;
        "live --at-used")
            mapfile -t COMPREPLY < <(compgen -W "80% 90% 95%" -- "$word"); return ;;
        "explain -m" | "explain --message" | "explain --gpu-total" | "explain -d" | "explain --device" | "explain --runs" | "explain --compat" | "explain -n" | "explain --rows" | "explain --fail-if" | "top -n" | "top --rows" | "top -d" | "top --device" | "steps -d" | "steps --device" | "steps --capacity" | "steps -n" | "steps --rows" | "steps --fail-if" | "diff --min" | "diff -n" | "diff --rows" | "diff -d" | "diff --device" | "diff --fail-above" | "diff --fail-if" | "fleet --rank-from" | "fleet --part" | "fleet -t" | "fleet --threads" | "fleet --max-size" | "replay -c" | "replay --conf" | "replay --capacity" | "replay --compat" | "replay --across" | "replay -d" | "replay --device" | "replay --steady-from" | "replay --fail-if" | "sweep --min-gain" | "sweep --runs" | "sweep -g" | "sweep --grid" | "sweep --capacity" | "sweep --compat" | "sweep -d" | "sweep --device" | "sweep -t" | "sweep --threads" | "sweep --part" | "sweep -n" | "sweep --rows" | "view --port" | "view --max-size" | "live --for" | "live -e" | "live --every" | "live --at-retries" | "live --at-growth" | "live --snapshot" | "live --at-most" | "live --folder" | "live -l" | "live --listen" | "live --lanes" | "live --processes-max" | "dry-run --card" | "dry-run --memory" | "dry-run --host" | "dry-run --gpus" | "dry-run --vary" | "dry-run --find" | "dry-run --world-size" | "dry-run --rank" | "dry-run --steps" | "dry-run --until" | "dry-run --patience" | "dry-run --request" | "dry-run --events" | "fit --card" | "fit --memory" | "fit --gpus" | "fit --world-size" | "fit --rank" | "fit --steps" | "fit --patience" | "fit --vary" | "fit --runs" | "fit --apply" | "fit --patch" | "plan --budget" | "plan --interval" | "plan --slots" | "plan --window" | "plan --table-max" | "estimate --batch" | "estimate --seq" | "estimate --accumulation" | "estimate --step" | "estimate -z" | "estimate --zero" | "estimate --data" | "estimate --tensor" | "estimate --pipeline" | "estimate --virtual-pipeline" | "estimate --stage" | "estimate --context" | "estimate --expert" | "estimate --lora" | "estimate --lora-targets" | "estimate --mask-bytes" | "estimate --requests" | "estimate --card" | "estimate --conf" | "estimate --driver" | "estimate --communication" | "export -d" | "export --device" | "export --slices" | "export --min-size" | "anonymize --key" | "run --allocator" | "run --allocator-conf" | "run --root" | "pages --purpose" | "pages --need" | "pages --page-size" | "pages --env" | "pages --pid" | "pages --root" | "pages --bytes" | "pages --rounds" | "demo --steps" | "demo --capacity" | "mcp --memory" | "mcp --seconds")
            return ;;
    esac
    case $command in
        info) options="--json --help" ;;
        explain) options="--at --message --gpu-total --device --runs --compat --rows --fail-if --baseline --annotate --json --help" ;;
        top) options="--at --by --inverted --stacks --free --map --rows --device --json --help" ;;
        steps) options="--device --capacity --rows --fail-if --baseline --annotate --json --help" ;;
        diff) options="--at --by --min --rows --device --fail-above --fail-if --baseline --annotate --json --help" ;;
        fleet) options="--all --rank-from --no-settings --store --part --merge --threads --output --max-size --json --help" ;;
        replay) options="--conf --place --capacity --find-capacity --compat --across --device --steady-from --check-order --decisions --fail-if --baseline --annotate --json --help" ;;
        sweep) options="--goal --without --min-gain --runs --grid --capacity --place --compat --device --threads --store --part --merge --rows --json --help" ;;
        view) options="--port --output --max-size --quick --series --terminal --help" ;;
        live) options="--once --for --every --at-used --at-retries --at-growth --snapshot --at-most --folder --no-driver --json --listen --metrics --lanes --processes-max --help" ;;
        dry-run) options="--card --memory --host --gpus --vary --find --world-size --rank --steps --until --patience --values --write --request --events --bracket --output --svg --quiet --json --help" ;;
        fit) options="--card --memory --gpus --world-size --rank --steps --patience --values --vary --runs --apply --patch --output --json --help" ;;
        plan) options="--budget --method --interval --slots --window --table-max --compare --curve --timeline --explain --svg --output --lp --judge --json --help" ;;
        estimate) options="--batch --seq --accumulation --precision --optimizer --step --attention --checkpointing --zero --data --tensor --sequence-parallel --pipeline --virtual-pipeline --stage --context --expert --lora --lora-targets --no-dropout --composed-norm --repeated-kv --index-add --bucket-view --mask-bytes --inference --requests --card --conf --driver --communication --layers --chain --list --json --help" ;;
        export) options="--output --format --at --device --slices --min-size --every-point --help" ;;
        anonymize) options="--output --key --hash-all --drop-lines --keep-times --json --help" ;;
        run) options="--node --membind --interleave --malloc --profile --thp --omp-threads --omp-bind --allocator --allocator-conf --on-oom --watch --prove --strict --quiet --dry-run --json --root --help" ;;
        pages) options="--purpose --need --node --page-size --env --pid --all --json --root --apply --undo --yes --journal --bench --bytes --rounds --only --here --help" ;;
        demo) options="--output --steps --capacity --yes --help" ;;
        mcp) options="--memory --seconds --help" ;;
    esac
    case $word in
        -*) mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word") ;;
        *) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    esac
}
complete -o filenames -F _drystone drystone
