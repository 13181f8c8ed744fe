package keys

import "sync"

// cacheEntries bounds the cache; a fleet's key servers are few.
const cacheEntries = 256

// cache remembers what a URL gave under which ETag.
type cache struct {
	mu    sync.Mutex
	byURL map[string]cached
}

type cached struct{ etag, text string }

func newCache() *cache { return &cache{byURL: map[string]cached{}} }

func (c *cache) get(url string) (cached, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byURL[url]
	return e, ok
}

// put stores an answer; without an ETag there is nothing to ask with. When the cache is
// full any one entry leaves: it costs a download.
func (c *cache) put(url, etag, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if etag == "" {
		delete(c.byURL, url)
		return
	}
	if len(c.byURL) >= cacheEntries {
		for other := range c.byURL {
			delete(c.byURL, other)
			break
		}
	}
	c.byURL[url] = cached{etag: etag, text: text}
}
