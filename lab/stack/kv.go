package stack

import "container/list"

// blockTokens is how many tokens one block of the key-value cache holds.
const blockTokens = 16

// prefixTokens is how many tokens share one hash in the workloads' prefixes.
const prefixTokens = 512

// prefixBlocks is how many blocks such a piece takes.
const prefixBlocks = prefixTokens / blockTokens

// kvCache is a paged key-value cache. Blocks of finished requests stay for the
// next one with the same beginning, until room is needed: the least recently used
// piece goes first.
type kvCache struct {
	total int // blocks
	used  int // by running requests
	// Sharing may be off: then nothing is found again.
	sharing bool
	// salt changes the hashes, as an upgrade may: what was stored is not found.
	salt uint64

	pieces map[prefixKey]*piece
	lru    *list.List // of pieces that nobody uses, the oldest first

	queried, hit, evicted int // tokens, tokens, pieces
}

type prefixKey struct{ hash, salt uint64 }

type piece struct {
	key   prefixKey
	users int
	place *list.Element // in lru, nil while in use
}

func newKVCache(blocks int) *kvCache {
	return &kvCache{total: blocks, sharing: true, pieces: map[prefixKey]*piece{}, lru: list.New()}
}

// idle is how many blocks hold what nobody uses.
func (k *kvCache) idle() int { return k.lru.Len() * prefixBlocks }

// usage is the share of blocks that running requests hold.
func (k *kvCache) usage() float64 { return float64(k.used) / float64(k.total) }

// room makes n blocks free for a running request.
func (k *kvCache) room(n int) bool {
	if k.used+n > k.total {
		return false
	}
	for k.used+n+k.idle() > k.total && k.lru.Len() > 0 {
		p := k.lru.Remove(k.lru.Front()).(*piece)
		delete(k.pieces, p.key)
		k.evicted++
	}
	return true
}

// take gives blocks to a running request.
func (k *kvCache) take(n int) bool {
	if !k.room(n) {
		return false
	}
	k.used += n
	return true
}

func (k *kvCache) give(n int) { k.used -= n }

// share finds how much of a prompt's beginning is there, and holds it.
func (k *kvCache) share(hashes []uint64, prompt int) (held []*piece, tokens int) {
	k.queried += prompt
	if !k.sharing {
		return nil, 0
	}
	for _, h := range hashes {
		p := k.pieces[prefixKey{h, k.salt}]
		if p == nil || tokens+prefixTokens >= prompt {
			break
		}
		if p.users == 0 {
			if k.used+prefixBlocks > k.total {
				break
			}
			k.lru.Remove(p.place)
			p.place = nil
			k.used += prefixBlocks
		}
		p.users++
		held = append(held, p)
		tokens += prefixTokens
	}
	k.hit += tokens
	return held, tokens
}

// drop lets go of pieces.
func (k *kvCache) drop(held []*piece) {
	for _, p := range held {
		if p.users--; p.users == 0 {
			k.used -= prefixBlocks
			p.place = k.lru.PushBack(p)
		}
	}
}

// keep stores the pieces of a prompt that were computed, in blocks that the
// request gives back.
func (k *kvCache) keep(hashes []uint64, from, prompt int) {
	if !k.sharing {
		return
	}
	for i := from / prefixTokens; i < len(hashes) && (i+1)*prefixTokens < prompt; i++ {
		key := prefixKey{hashes[i], k.salt}
		if k.pieces[key] != nil || k.used+k.idle()+prefixBlocks > k.total {
			continue
		}
		p := &piece{key: key}
		p.place = k.lru.PushBack(p)
		k.pieces[key] = p
	}
}

// clear forgets all that nobody uses.
func (k *kvCache) clear() {
	for k.lru.Len() > 0 {
		p := k.lru.Remove(k.lru.Front()).(*piece)
		delete(k.pieces, p.key)
	}
}
