# fish completion for drystone(1)

set -l commands info replay demo help
complete -c drystone -n "not __fish_seen_subcommand_from $commands" -f
complete -c drystone -n "not __fish_seen_subcommand_from $commands" -a info -d "What is in a file"
complete -c drystone -n "not __fish_seen_subcommand_from $commands" -a replay -d "Do it again"
complete -c drystone -n "not __fish_seen_subcommand_from $commands" -a demo -d "Show the main job"
complete -c drystone -n "not __fish_seen_subcommand_from $commands" -a help -d "What a command does"
complete -c drystone -n "not __fish_seen_subcommand_from $commands" -l version -d "The version"
complete -c drystone -s h -l help -d "Help"
complete -c drystone -n "__fish_seen_subcommand_from help" -f -a "info replay demo"
complete -c drystone -n "__fish_seen_subcommand_from info replay" -l json -d "Print JSON"
complete -c drystone -n "__fish_seen_subcommand_from replay" -s c -l conf -x -d "Settings to try"
complete -c drystone -n "__fish_seen_subcommand_from replay" -s d -l device -x -d "The device"
complete -c drystone -n "__fish_seen_subcommand_from demo" -s o -l output -r -d "The snapshot"
complete -c drystone -n "__fish_seen_subcommand_from demo" -l steps -x -d "Training steps"
complete -c drystone -n "__fish_seen_subcommand_from replay" -l compat -x -d "Rules of a release"
complete -c drystone -n "__fish_seen_subcommand_from replay" -l capacity -x -d "Memory of the device"
complete -c drystone -n "__fish_seen_subcommand_from replay" -l find-capacity -d "The smallest device"
complete -c drystone -n "__fish_seen_subcommand_from replay" -l decisions -r -d "One line an action"
