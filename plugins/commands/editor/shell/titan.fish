# Completion of titan for fish. It asks `titan __complete`, so commands and options of all installed plugins are offered.
# Print it by `titan completion fish`.

function __titan_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r '^~' $HOME -- $words[1])
    set -l lines ($program __complete -- $words[2..-1] "$current" 2>/dev/null)
    for line in $lines[2..-1]
        echo $line
    end
    switch "$lines[1]"
        case '*files*'
            __fish_complete_path $current
        case '*folders*'
            __fish_complete_directories $current
    end
end

complete -c titan -f -a '(__titan_complete)'
