// Command browser opens a page in a headless Chromium and fails if the page is not as a report must be: an error or a message on the
// console, a request for anything but the page, a picture that is missing or empty, a text that leaves its picture or lies on another, or a
// page that is wider than the window. It opens the page at two widths in both themes, and writes a screenshot of each.
//
//	browser CHROMIUM PAGE SCREENSHOTS ID...      each ID must be a figure of the page, such as figure-lead
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: browser CHROMIUM PAGE SCREENSHOTS ID...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4:]); err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		os.Exit(1)
	}
}

// chromium is a browser and its messages, which are JSON that ends with a zero byte.
type chromium struct {
	to      *os.File
	from    *bufio.Reader
	next    int
	session string
	events  []message
}

type message struct {
	ID        int             `json:"id,omitempty"`
	Method    string          `json:"method,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// limit ends a browser that hangs.
const limit = 120 * time.Second

func run(program, page, screenshots string, ids []string) error {
	page, err := filepath.Abs(page)
	if err != nil {
		return err
	}
	profile, err := os.MkdirTemp("", "browser")
	if err != nil {
		return err
	}
	defer os.RemoveAll(profile)
	cmd := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
		"--disable-dev-shm-usage", "--remote-debugging-pipe", "--user-data-dir="+profile, "about:blank")
	theirs, to, err := os.Pipe()
	if err != nil {
		return err
	}
	from, answers, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.ExtraFiles = []*os.File{theirs, answers} // the browser reads 3 and writes 4
	if err := cmd.Start(); err != nil {
		return err
	}
	theirs.Close()
	answers.Close()
	stop := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer func() {
		stop.Stop()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	c := &chromium{to: to, from: bufio.NewReader(from)}
	if err := c.attach(); err != nil {
		return err
	}
	var problems []string
	for _, width := range []int{400, 1280} {
		for _, theme := range []string{"light", "dark"} {
			found, err := c.look(page, width, theme, filepath.Join(screenshots, fmt.Sprintf("%d-%s.png", width, theme)), ids)
			if err != nil {
				return fmt.Errorf("%d pixels, %s: %w", width, theme, err)
			}
			for _, what := range found {
				problems = append(problems, fmt.Sprintf("%d pixels, %s: %s", width, theme, what))
			}
		}
	}
	if problems != nil {
		return errors.New(strings.Join(problems, "\n"))
	}
	fmt.Println(texts) // that were inside their pictures
	return nil
}

// texts counts those of all pictures that were looked at.
var texts int

// call sends a command and returns its result. Events that come before it are kept.
func (c *chromium) call(method string, params map[string]any, result any) error {
	c.next++
	command := map[string]any{"id": c.next, "method": method, "params": params}
	if c.session != "" {
		command["sessionId"] = c.session
	}
	text, err := json.Marshal(command)
	if err != nil {
		return err
	}
	if _, err := c.to.Write(append(text, 0)); err != nil {
		return err
	}
	for {
		m, err := c.read()
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", method, err)
		case m.ID != c.next:
			continue
		case m.Error != nil:
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		case result == nil:
			return nil
		}
		return json.Unmarshal(m.Result, result)
	}
}

func (c *chromium) read() (m message, err error) {
	text, err := c.from.ReadBytes(0)
	if err != nil {
		return m, err
	}
	if err = json.Unmarshal(text[:len(text)-1], &m); err == nil && m.ID == 0 {
		c.events = append(c.events, m)
	}
	return m, err
}

func (c *chromium) attach() error {
	var target struct {
		TargetID string `json:"targetId"`
	}
	if err := c.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return err
	}
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	if err := c.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached); err != nil {
		return err
	}
	c.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		if err := c.call(domain+".enable", map[string]any{}, nil); err != nil {
			return err
		}
	}
	return nil
}

// question asks the page for what a reader would see. All details are opened first.
const question = `(() => {
  document.querySelectorAll("details").forEach(d => d.open = true);
  const plots = [...document.querySelectorAll("svg.plot")];
  const seen = e => { const b = e.getBoundingClientRect(); return b.width > 100 && b.height > 50 };
  const inside = (t, p) => t.left >= p.left - 0.5 && t.right <= p.right + 0.5 && t.top >= p.top - 0.5 && t.bottom <= p.bottom + 0.5;
  const across = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 4 && b.top < a.bottom - 4;
  const outside = [], over = [];
  for (const p of plots) {
    const box = p.getBoundingClientRect(), texts = [...p.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()]);
    texts.forEach(([text, b], i) => {
      if (!inside(b, box)) outside.push(p.getAttribute("aria-labelledby") + ": " + text + ", from " + (b.left - box.left).toFixed(1) + " to " + (b.right - box.left).toFixed(1) + " of " + box.width.toFixed(1));
      texts.slice(0, i).forEach(([other, o]) => { if (across(b, o)) over.push(p.getAttribute("aria-labelledby") + ": " + text + " on " + other) });
    });
  }
  return {
    outside, over,
    texts: plots.reduce((n, p) => n + p.querySelectorAll("text").length, 0),
    width: document.scrollingElement.scrollWidth,
    plots: plots.length,
    hidden: plots.filter(p => !seen(p) || p.querySelectorAll("path,text").length < 2).map(p => p.getAttribute("aria-labelledby")),
    smallest: Math.min(...plots.map(p => 12 * p.getBoundingClientRect().width / p.viewBox.baseVal.width)),
    figures: [...document.querySelectorAll("figure")].map(f => f.id),
    scripts: document.querySelectorAll("script,iframe,object,embed,link,img:not([src^='data:image/png;base64,']),image,use,foreignObject,base,form").length,
    handlers: [...document.querySelectorAll("*")].filter(e => [...e.attributes].some(a => a.name.startsWith("on"))).length,
    broken: [...document.images].filter(i => !i.complete || i.naturalWidth == 0 || !i.alt || i.getBoundingClientRect().width < 20).map(i => i.alt),
    untitled: plots.filter(p => p.getAttribute("aria-labelledby").split(" ").some(id => document.querySelectorAll("#" + id).length != 1)).length,
  }
})()`

type answer struct {
	Width, Plots, Scripts, Handlers, Untitled, Texts int
	Smallest                                         float64
	Hidden, Figures, Outside, Over, Broken           []string
}

// textMin is the size of the smallest text that is readable, in pixels.
const textMin = 10

func (c *chromium) look(page string, width int, theme, screenshot string, ids []string) (problems []string, err error) {
	c.events = nil
	address := (&url.URL{Scheme: "file", Path: page}).String()
	if err := errors.Join(
		c.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil),
		c.call("Emulation.setEmulatedMedia",
			map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": theme}}}, nil),
		c.call("Page.navigate", map[string]any{"url": address}, nil)); err != nil {
		return nil, err
	}
	for !c.saw("Page.loadEventFired") {
		if _, err := c.read(); err != nil {
			return nil, err
		}
	}
	var evaluated struct {
		Result struct {
			Value answer `json:"value"`
		} `json:"result"`
	}
	if err := c.call("Runtime.evaluate", map[string]any{"expression": question, "returnByValue": true}, &evaluated); err != nil {
		return nil, err
	}
	var picture struct {
		Data string `json:"data"`
	}
	if err := c.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &picture); err != nil {
		return nil, err
	}
	data, err := base64.StdEncoding.DecodeString(picture.Data)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(screenshot, data, 0o644); err != nil {
		return nil, err
	}
	texts += evaluated.Result.Value.Texts
	return append(judge(evaluated.Result.Value, width, ids), c.complaints(address)...), nil
}

func (c *chromium) saw(method string) bool {
	for _, e := range c.events {
		if e.Method == method {
			return true
		}
	}
	return false
}

// judge compares what the page holds with what it must hold.
func judge(a answer, width int, ids []string) (problems []string) {
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, id := range ids {
		if !strings.Contains(" "+strings.Join(a.Figures, " ")+" ", " "+id+" ") {
			say("there is no figure %s; there are %v", id, a.Figures)
		}
	}
	switch {
	case a.Plots == 0 || len(a.Hidden) > 0:
		say("%d plots, and these are empty: %v", a.Plots, a.Hidden)
	case a.Width > width:
		say("the page is %d pixels wide", a.Width)
	case a.Smallest < textMin:
		say("the text of a plot is %.1f pixels high, must be %d", a.Smallest, textMin)
	}
	for _, text := range a.Outside {
		say("a text leaves its picture: %s", text)
	}
	for _, text := range a.Over {
		say("a text lies on another: %s", text)
	}
	for _, what := range a.Broken {
		say("a picture is not seen, or has no text for those who cannot see it: %q", what)
	}
	if a.Scripts+a.Handlers > 0 {
		say("%d elements that run or load something, %d handlers", a.Scripts, a.Handlers)
	}
	if a.Untitled > 0 {
		say("%d plots lack a title or a description", a.Untitled)
	}
	return problems
}

// complaints are the messages of the console, and the requests for anything but the page.
func (c *chromium) complaints(address string) (problems []string) {
	for _, e := range c.events {
		var p struct {
			Request struct {
				URL string `json:"url"`
			} `json:"request"`
		}
		switch e.Method {
		case "Network.requestWillBeSent":
			if err := json.Unmarshal(e.Params, &p); err != nil || p.Request.URL != address && !strings.HasPrefix(p.Request.URL, "data:image/png;") {
				problems = append(problems, fmt.Sprintf("a request for %.80s", p.Request.URL))
			}
		case "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded":
			problems = append(problems, "the console says "+string(e.Params))
		}
	}
	return problems
}
