-- Stores of texts: memories and collections of documents. Texts are sealed, and words are numbers that follow from a key of
-- their store, so that nothing of a text can be found here.

CREATE TABLE stores (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL REFERENCES tenants (id),
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    description TEXT,
    terms TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    -- Its items are deleted after it is removed.
    removed_at INTEGER,
    -- The key of its index; destroyed when it is removed.
    ciphertext BLOB,
    wrapped_key BLOB,
    master_key TEXT REFERENCES master_keys (id)
) STRICT;
CREATE UNIQUE INDEX stores_by_name ON stores (tenant, name) WHERE removed_at IS NULL;
CREATE INDEX stores_removed ON stores (removed_at) WHERE removed_at IS NOT NULL;
CREATE INDEX stores_under_key ON stores (master_key, id) WHERE master_key IS NOT NULL;

-- Each ingestion of a document. It is found while it is current, and its chunks are deleted after that.
CREATE TABLE store_documents (
    id TEXT NOT NULL PRIMARY KEY,
    store TEXT NOT NULL,
    document TEXT NOT NULL,
    -- ingesting, current, removed.
    state TEXT NOT NULL,
    title TEXT,
    source TEXT,
    format TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    chunks INTEGER NOT NULL,
    removed_parts TEXT NOT NULL,
    ingested_by TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX store_documents_current ON store_documents (store, document) WHERE state = 'current';
CREATE INDEX store_documents_of_store ON store_documents (store, state);
CREATE INDEX store_documents_leftover ON store_documents (created_at) WHERE state <> 'current';

CREATE TABLE store_items (
    id TEXT NOT NULL PRIMARY KEY,
    store TEXT NOT NULL,
    -- Whose it is, as a keyed hash.
    partition_hash TEXT NOT NULL,
    -- The key that its writer gave it, as a keyed hash.
    key_hash TEXT,
    -- The ingestion that it is a chunk of.
    document TEXT,
    -- The number of its words.
    length INTEGER NOT NULL,
    agent TEXT NOT NULL,
    actor TEXT NOT NULL,
    invocation TEXT,
    run TEXT,
    trusted INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    ciphertext BLOB NOT NULL,
    wrapped_key BLOB NOT NULL,
    master_key TEXT NOT NULL REFERENCES master_keys (id)
) STRICT;
CREATE INDEX store_items_of_partition ON store_items (store, partition_hash, id, length);
CREATE UNIQUE INDEX store_items_by_key ON store_items (store, partition_hash, key_hash) WHERE key_hash IS NOT NULL;
CREATE INDEX store_items_of_agent ON store_items (store, agent, id);
CREATE INDEX store_items_of_document ON store_items (document) WHERE document IS NOT NULL;
CREATE INDEX store_items_by_end ON store_items (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX store_items_under_key ON store_items (master_key, id);

-- Which items have which words, by numbers that follow from the word, the partition and the key of the store.
CREATE TABLE store_words (
    word INTEGER NOT NULL,
    item TEXT NOT NULL,
    occurrences INTEGER NOT NULL,
    length INTEGER NOT NULL,
    PRIMARY KEY (word, item)
) STRICT, WITHOUT ROWID;
CREATE INDEX store_words_of_item ON store_words (item);
