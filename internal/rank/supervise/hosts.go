package supervise

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Each launcher has options of its own for hosts. So the user writes the launcher's command line, with placeholders.
const (
	wordRanks = "{ranks}" // 4
	wordHosts = "{hosts}" // a:2,b:2
	wordNames = "{names}" // a,b
	wordNodes = "{nodes}" // 2
)

const (
	// answerTime is how long a host may take to start one process.
	answerTime = 30 * time.Second
	// endTime is how long a launcher may take to end that process.
	endTime = 2 * time.Second
)

// bracedWord matches text that looks like a placeholder.
var bracedWord = regexp.MustCompile(`\{[a-z]+\}`)

// CheckPlaces checks the placeholders in the launcher's command line. With hosts (--hosts) the command line must say
// how many ranks start and where; without hosts it must have no placeholder.
func CheckPlaces(launcher []string, hosts bool) error {
	line := strings.Join(launcher, " ")
	places := []string{wordRanks, wordHosts, wordNames, wordNodes}
	for _, w := range bracedWord.FindAllString(line, -1) {
		if !slices.Contains(places, w) {
			return fmt.Errorf("the launcher has %s, which is no placeholder; the placeholders are: %s", w, strings.Join(places, ", "))
		}
	}
	if !hosts {
		for _, w := range places {
			if strings.Contains(line, w) {
				return fmt.Errorf("the launcher has %s: add --hosts, as in --hosts node1:3,node2:3", w)
			}
		}
		return nil
	}
	if !strings.Contains(line, wordRanks) || !strings.Contains(line, wordHosts) && !strings.Contains(line, wordNames) {
		return fmt.Errorf(
			"--hosts needs the placeholders %s and %s or %s in the launcher's command line, as in -- mpirun -n %s --host %s",
			wordRanks, wordHosts, wordNames, wordRanks, wordHosts)
	}
	return nil
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

// launcherFor replaces the placeholders in the launcher's command line, for the hosts of the ranks.
func (s *supervisor) launcherFor(hosts []string) []string {
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
	words := make([]string, len(s.Launcher))
	for i, w := range s.Launcher {
		words[i] = put.Replace(w)
	}
	return words
}

// answeringHosts returns the hosts without those on which the launcher cannot start this program. If no host answers,
// the launcher itself fails, and all hosts are returned.
func (s *supervisor) answeringHosts(ctx context.Context) (hosts []string) {
	var silent []string
	for _, name := range namesOf(s.Hosts) {
		if !s.answers(ctx, name) {
			silent = append(silent, name)
		}
	}
	for _, h := range s.Hosts {
		if !slices.Contains(silent, h) {
			hosts = append(hosts, h)
		}
	}
	switch {
	case len(silent) == 0:
	case len(hosts) == 0:
		s.Say("no host answers; trying all of them again")
		return s.Hosts
	default:
		s.Say(fmt.Sprintf("nothing starts on %s within %s; continuing with %d of %d ranks",
			strings.Join(silent, ", "), answerTime, len(hosts), len(s.Hosts)))
	}
	return hosts
}

// answers tests a host: it starts a process of this program there like a rank.
func (s *supervisor) answers(ctx context.Context, host string) bool {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	words := append(s.launcherFor([]string{host}), s.Program, "--version")
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that the launcher ends the process that it has started
	cmd.WaitDelay = endTime
	return cmd.Run() == nil
}
