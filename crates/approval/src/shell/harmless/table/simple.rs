//! Programs that read or process the files that they are given, and load no settings.

use super::{Anything, List, Nothing, Paths, Program, Text, TextThenPaths, simple};

/// Programs that do the same in every directory: they read only what they are given.
pub(in crate::shell::harmless) const EVERYWHERE: List = "ls cat head tail wc grep egrep fgrep rg find fd fdfind diff cmp comm sort uniq cut tr nl tac rev paste fold column hexdump \
    xxd strings file stat du df basename dirname realpath readlink pwd date md5sum sha1sum sha256sum sha512sum \
    echo true false sleep seq test cd pushd popd mkdir touch rm rmdir cp mv chmod tee jq which type whoami \
    id uname nproc uptime free tree";

pub(super) const PROGRAMS: &[Program] = &[
    simple(
        "ls",
        "-a -A -l -h -1 -R -r -t -S -s -d -F -i -n -o -g -p -G -x -m -q -Q -U -X -v -c -u -I= --all --almost-all \
        --human-readable --recursive --reverse --color[=] --sort= --time= --group-directories-first --size --directory \
        --classify[=] --inode --full-time",
        Paths,
    ),
    simple("cat", "-n -b -s -A -e -t -v -E -T -u --number --show-all --squeeze-blank", Paths),
    simple("head tail", "-n= -c= -q -v -f -# --lines= --bytes= --quiet --verbose", Paths),
    simple("wc", "-l -w -c -m -L --lines --words --bytes --chars", Paths),
    simple(
        "grep egrep fgrep",
        // Not `-e` and `-f`: with them the first operand is a path. Not `-R`: it follows links.
        "-i -n -r -v -w -x -c -l -L -o -q -s -h -H -E -F -P -G -z -a -I -A= -B= -C= -m= -# --include= --exclude= \
        --exclude-dir= --color[=] --recursive --ignore-case --line-number --files-with-matches --files-without-match --count \
        --only-matching --word-regexp --line-regexp --invert-match --no-filename --with-filename --extended-regexp \
        --fixed-strings --perl-regexp --context= --after-context= --before-context= --max-count= --quiet --silent \
        --no-messages --text --binary-files= --null",
        TextThenPaths,
    ),
    simple(
        "rg",
        "-i -n -N -v -w -x -c -l -o -q -s -S -F -P -U -p -A= -B= -C= -m= -g= -t= -T= -# --json --hidden --no-ignore --glob= \
        --type= --type-not= --ignore-case --smart-case --line-number --count --files-with-matches --files-without-match \
        --word-regexp --fixed-strings --only-matching --context= --after-context= --before-context= --max-count= --color= \
        --heading --no-heading --pretty --column --trim --stats --sort= --max-depth= --multiline --pcre2 --vimgrep",
        TextThenPaths,
    ),
    simple(
        "find gfind",
        "-name= -iname= -type= -maxdepth= -mindepth= -path= -ipath= -regex= -iregex= -size= -mtime= -mmin= -atime= -ctime= \
        -empty -print -print0 -printf= -prune -not -a -o -and -or -newer=/ -perm= -user= -group= -executable -readable \
        -writable -depth -xdev -mount -quit -true -false -ls -links=",
        Paths,
    ),
    simple(
        "fd fdfind",
        "-e= -t= -H -I -i -s -g -F -d= -E= -a -p -0 --extension= --type= --hidden --no-ignore --max-depth= --exclude= --glob \
        --ignore-case --case-sensitive --fixed-strings --full-path --absolute-path --print0",
        TextThenPaths,
    ),
    simple("tree", "-L= -a -d -f -i -s -h -D -C -I= -P= --noreport --dirsfirst --prune --gitignore", Paths),
    simple(
        "diff",
        "-u -r -q -w -b -i -B -N -y -c -a -s -U= -C= --unified[=] --brief --recursive --ignore-all-space --ignore-case \
        --color[=] --side-by-side --new-file",
        Paths,
    ),
    simple("cmp comm", "-1 -2 -3 -b -l -s -n= --silent --quiet --bytes=", Paths),
    simple(
        "sort gsort",
        "-r -n -u -k= -t= -f -h -V -b -c -M -g -s -z --reverse --numeric-sort --unique --key= --field-separator= \
        --ignore-case --human-numeric-sort --version-sort --stable",
        Paths,
    ),
    simple("uniq", "-c -d -u -i -f= -s= -w= --count --repeated --unique --ignore-case", Paths),
    simple("cut", "-d= -f= -c= -b= -s --delimiter= --fields= --characters= --complement --only-delimited", Paths),
    simple("tr", "-d -s -c -C --delete --squeeze-repeats --complement", Text),
    simple("nl tac rev", "-b= -w= -s=", Paths),
    simple("paste fold column", "-d= -s -w= -t", Paths),
    simple("hexdump xxd strings", "-C -n= -s= -v -l= -c= -g= -p -u -a", Paths),
    simple("file", "-b -i -k --mime --mime-type --brief", Paths),
    simple("stat", "-c= -t --format= --printf= --terse", Paths),
    simple("du df", "-h -s -a -c -d= -k -m -b -T -i --max-depth= --summarize --human-readable --total", Paths),
    simple("basename dirname", "-a -s= -z", Text),
    simple("realpath readlink", "-f -e -m -s -n -q", Paths),
    simple("pwd", "-P -L", Nothing),
    simple("date", "-u -I[=] -R --utc --iso-8601[=] --rfc-3339=", Text),
    simple("md5sum sha1sum sha256sum sha512sum", "-b -t --binary --text --tag", Paths),
    simple("echo", "", Anything),
    // With `-v` bash evaluates an index in the name of a variable, and a command in it; `%n` sets a variable.
    simple("printf", "", Nothing),
    simple("true false sleep seq", "", Text),
    // Not `-v` and `-R`, which evaluate names as well.
    simple("test", "-f -d -e -r -w -x -s -L -h -n -z -nt -ot", Paths),
    simple("cd pushd", "", Paths),
    simple("popd", "", Nothing),
    simple("mkdir", "-p -v --parents --verbose", Paths),
    simple("touch", "-a -c -m -d= -t= --no-create --date=", Paths),
    simple("rm rmdir", "-r -f -R -v -d -i -I -p --recursive --force --verbose --dir --parents", Paths),
    simple(
        "cp mv",
        "-r -R -a -p -v -f -n -u -i -d -P --recursive --archive --verbose --force --no-clobber --update --preserve[=]",
        Paths,
    ),
    simple("chmod", "-R -v -c --recursive --verbose --changes", TextThenPaths),
    simple("tee", "-a --append", Paths),
    // A first word without a dash would be a bundle of options, so only options are covered.
    simple(
        "tar gtar bsdtar",
        "-x -t -c -z -j -J -v -k -m -f=/ --list --extract --create --gzip --verbose --file=/",
        Nothing,
    ),
    simple(
        "rsync",
        "-a -v -r -n -q -h -u -z -t -p -l --archive --verbose --recursive --dry-run --quiet --progress --stats --exclude= \
        --include=",
        Paths,
    ),
    simple("unzip", "-l -q -o -n -j -t -v", Paths),
    simple(
        "jq",
        "-r -c -e -s -n -S -M -C -a -j --raw-output --compact-output --slurp --null-input --sort-keys --exit-status --tab \
        --indent= --raw-input -R",
        TextThenPaths,
    ),
    simple("which type", "-a", Text),
    simple("whoami nproc uptime free", "-h -b -k -m -g --all", Nothing),
    simple("id", "-u -g -n -G -r", Text),
    simple("uname", "-a -r -s -m -n -p -v -o -i", Nothing),
    simple("ps", "-e -f -A -a -x -u= -p= -o= --forest --sort=", Text),
];
