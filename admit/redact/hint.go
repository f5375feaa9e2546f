package redact

import (
	"slices"
	"strings"
)

// hint is what the name before a number and the word after it say about it.
type hint int

const (
	hintNone hint = iota
	hintOrdinary
	hintPhone
	hintCard
	hintSocial
)

// Parts of names that say what a number is; those with = are whole words. The
// first list that has one decides.
var (
	phoneParts  = strings.Fields("phone mobile msisdn whatsapp 手机 电话 号码 联系 =tel =cell =fax =contact")
	cardParts   = strings.Fields("card 卡号 银行卡 =pan")
	socialParts = strings.Fields("=ssn social")
	// ordinaryParts are of measures, times and identifiers of machines.
	ordinaryParts = strings.Fields("byte size mem count total time stamp date _ts _ns _us _ms nano micro milli duration latency " +
		"offset seq used free limit capacity length token step flop param rate score trace span seed hash sum uuid guid " +
		"request_id req_id requestid order_id session seconds version build epoch iter index position " +
		"订单 单号 流水 编号 序号 时间 时长 耗时 用时 延迟 大小 内存 显存 字节 长度 偏移 总数 数量 计数 总量 金额 种子 批次 版本 步数 参数")
	// units after a number make it a measure.
	units = strings.Fields("b byte bytes kb kib mb mib gb gib tb k m g ms us ns s sec secs second seconds minutes hours " +
		"tokens rows items requests records events times ops iterations params flops points samples % 字节 毫秒 纳秒 次 个 条 元")
)

// hint asks about the number between start and end.
func (s *scanner) hint(start, end int) hint {
	key := s.keyBefore(start)
	for _, c := range []struct {
		parts []string
		hint  hint
	}{{phoneParts, hintPhone}, {cardParts, hintCard}, {socialParts, hintSocial}} {
		if containsAny(key, c.parts) {
			return c.hint
		}
	}
	if containsAny(key, ordinaryParts) || s.unitAfter(end) {
		return hintOrdinary
	}
	return hintNone
}

func containsAny(key string, parts []string) bool {
	if key == "" {
		return false
	}
	words := strings.FieldsFunc(key, func(r rune) bool { return r == '_' || r == '-' || r == '.' || r == ' ' })
	return slices.ContainsFunc(parts, func(p string) bool {
		if whole, ok := strings.CutPrefix(p, "="); ok {
			return slices.Contains(words, whole)
		}
		return strings.Contains(key, p)
	})
}

// maxKey bounds how far back a name is looked for, in bytes.
const maxKey = 64

// keyBefore returns the name, in lower case, that text at i is the value of, as
// in name=, "name": or, for metrics, name_with_lines.
func (s *scanner) keyBefore(i int) string {
	at := i
	skip := func(what string) bool {
		before := at
		for at > 0 && i-at < maxKey && strings.IndexByte(what, s.text[at-1]) >= 0 {
			at--
		}
		return at < before
	}
	skip(" \t\"'\\")
	near := i-at <= 1
	if list := s.listStart(at); list < at {
		at = list
		skip(" \t\"'\\")
	}
	if at == 0 {
		return s.key
	}
	assigned := skip("=:>")
	if !assigned && at >= len(wideColon) && s.has(at-len(wideColon), wideColon) {
		at, assigned = at-len(wideColon), true
	}
	if s.text[max(at-1, 0)] == '}' { // the labels of a metric
		return "metric_total"
	}
	if assigned {
		skip(" \t\"'\\")
	}
	end := at
	for at > 0 && i-at < maxKey && (isWord(s.text[at-1]) || s.text[at-1] == '.' || s.text[at-1] == '-' || (assigned || near) && s.text[at-1] >= 0x80) {
		at--
	}
	key := strings.ToLower(string(s.text[at:end]))
	chinese := end > 0 && s.text[end-1] >= 0x80
	if chinese {
		key = nearest(key)
	}
	if assigned || strings.Contains(key, "_") || containsAny(key, phoneParts) || chinese && containsAny(key, ordinaryParts) {
		return key
	}
	return ""
}

// nearest returns the end of a Chinese text: the words next to a number tell what
// it is, those of the sentence before do not.
func nearest(key string) string {
	const few = 4 * len("字")
	if at := strings.LastIndexAny(key, "，。；：、！？（）"); at >= 0 {
		key = key[at:]
	}
	return strings.ToValidUTF8(key[max(0, len(key)-few):], "")
}

// listStart returns where the list of numbers begins that i is in, as in
// sizes=[1, 2, 3], or i itself.
func (s *scanner) listStart(i int) int {
	at := i
	for at > 0 && i-at < maxKey && (isDigit(s.text[at-1]) || strings.IndexByte(" ,.", s.text[at-1]) >= 0) {
		at--
	}
	if at > 0 && s.text[at-1] == '[' && at > 1 {
		return at - 1
	}
	return i
}

// unitAfter tells whether a unit follows, at once or after a space.
func (s *scanner) unitAfter(i int) bool {
	if s.byteAt(i) == ' ' {
		i++
	}
	for _, u := range units {
		if i+len(u) <= len(s.text) && strings.EqualFold(string(s.text[i:i+len(u)]), u) && (u[0] >= 0x80 || !isWord(s.byteAt(i+len(u)))) {
			return true
		}
	}
	return false
}
