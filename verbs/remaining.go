package verbs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Restarts on the hosts that remain. Which hosts a launcher takes, each has words of its own for, so these are written by
// the user, with places for what changes.

const (
	wordRanks = "{ranks}" // 4
	wordHosts = "{hosts}" // a:2,b:2
	wordNames = "{names}" // a,b
	wordNodes = "{nodes}" // 2

	// answerTime is how long a host may take to start one process.
	answerTime = 30 * time.Second
)

// bracedWord is what looks like a place in the launcher's words.
var bracedWord = regexp.MustCompile(`\{[a-z]+\}`)

// takeHosts reads --hosts, whose places the launcher's words must have.
func (s *supervisor) takeHosts() error {
	line := strings.Join(s.launcher, " ")
	places := []string{wordRanks, wordHosts, wordNames, wordNodes}
	for _, w := range bracedWord.FindAllString(line, -1) {
		if !slices.Contains(places, w) {
			return usagef("run: the launcher has %s, which is no place; there are: %s", w, strings.Join(places, ", "))
		}
	}
	if !s.c.IsSet("hosts") {
		for _, w := range places {
			if strings.Contains(line, w) {
				return usagef("run: the launcher has %s: add --hosts, as in --hosts node1:3,node2:3", w)
			}
		}
		return nil
	}
	if !strings.Contains(line, wordRanks) || !strings.Contains(line, wordHosts) && !strings.Contains(line, wordNames) {
		return usagef("run: --hosts is for the places %s and %s or %s in the launcher's words, as in -- mpirun -n %s --host %s", wordRanks, wordHosts, wordNames, wordRanks, wordHosts)
	}
	var err error
	s.hosts, err = hostList("run", s.c.String("hosts"))
	return err
}

// namesOf lists each host once.
func namesOf(hosts []string) (names []string) {
	for _, h := range hosts {
		if !slices.Contains(names, h) {
			names = append(names, h)
		}
	}
	return names
}

// fill puts the hosts of the ranks into the launcher's words.
func (s *supervisor) fill(hosts []string) []string {
	names := namesOf(hosts)
	slots := make([]string, len(names))
	for i, name := range names {
		n := 0
		for _, h := range hosts {
			if h == name {
				n++
			}
		}
		slots[i] = name + ":" + strconv.Itoa(n)
	}
	put := strings.NewReplacer(wordRanks, strconv.Itoa(len(hosts)), wordHosts, strings.Join(slots, ","),
		wordNames, strings.Join(names, ","), wordNodes, strconv.Itoa(len(names)))
	words := make([]string, len(s.launcher))
	for i, w := range s.launcher {
		words[i] = put.Replace(w)
	}
	return words
}

// remaining leaves out the hosts on which the launcher cannot start this program. Where none answers, it is the launcher
// that fails, and all are tried.
func (s *supervisor) remaining() (hosts []string) {
	var silent []string
	for _, name := range namesOf(s.hosts) {
		if !s.answers(name) {
			silent = append(silent, name)
		}
	}
	for _, h := range s.hosts {
		if !slices.Contains(silent, h) {
			hosts = append(hosts, h)
		}
	}
	switch {
	case len(silent) == 0:
	case len(hosts) == 0:
		printError(s.c.App.ErrWriter, "no host answers; all are tried again")
		return s.hosts
	default:
		printError(s.c.App.ErrWriter, fmt.Sprintf("nothing starts on %s within %s; going on with %d of %d ranks", strings.Join(silent, ", "), answerTime, len(hosts), len(s.hosts)))
	}
	return hosts
}

// answers tries a host: a process of this program is started there as the ranks are.
func (s *supervisor) answers(host string) bool {
	ctx, cancel := context.WithTimeout(s.c.Context, answerTime)
	defer cancel()
	words := append(s.fill([]string{host}), os.Args[0], "--version")
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that it ends what it has started
	cmd.WaitDelay = lastWords
	return cmd.Run() == nil
}
