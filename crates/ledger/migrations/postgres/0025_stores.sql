-- Stores of texts: memories and collections of documents. Texts are sealed, and words are numbers that follow from a key of
-- their store, so that nothing of a text can be found here.

CREATE TABLE stores (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    name TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C",
    terms TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    -- Its items are deleted after it is removed.
    removed_at BIGINT,
    -- The key of its index; destroyed when it is removed.
    ciphertext BYTEA,
    wrapped_key BYTEA,
    master_key TEXT COLLATE "C" REFERENCES master_keys (id)
);
CREATE UNIQUE INDEX stores_by_name ON stores (tenant, name) WHERE removed_at IS NULL;
CREATE INDEX stores_removed ON stores (removed_at) WHERE removed_at IS NOT NULL;
CREATE INDEX stores_under_key ON stores (master_key, id) WHERE master_key IS NOT NULL;

-- Each ingestion of a document. It is found while it is current, and its chunks are deleted after that.
CREATE TABLE store_documents (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    store TEXT COLLATE "C" NOT NULL,
    document TEXT COLLATE "C" NOT NULL,
    -- ingesting, current, removed.
    state TEXT COLLATE "C" NOT NULL,
    title TEXT COLLATE "C",
    source TEXT COLLATE "C",
    format TEXT COLLATE "C" NOT NULL,
    bytes BIGINT NOT NULL,
    chunks BIGINT NOT NULL,
    removed_parts TEXT COLLATE "C" NOT NULL,
    ingested_by TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX store_documents_current ON store_documents (store, document) WHERE state = 'current';
CREATE INDEX store_documents_of_store ON store_documents (store, state);
CREATE INDEX store_documents_leftover ON store_documents (created_at) WHERE state <> 'current';

CREATE TABLE store_items (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    store TEXT COLLATE "C" NOT NULL,
    -- Whose it is, as a keyed hash.
    partition_hash TEXT COLLATE "C" NOT NULL,
    -- The key that its writer gave it, as a keyed hash.
    key_hash TEXT COLLATE "C",
    -- The ingestion that it is a chunk of.
    document TEXT COLLATE "C",
    -- The number of its words.
    length BIGINT NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    actor TEXT COLLATE "C" NOT NULL,
    invocation TEXT COLLATE "C",
    run TEXT COLLATE "C",
    trusted BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    ciphertext BYTEA NOT NULL,
    wrapped_key BYTEA NOT NULL,
    master_key TEXT COLLATE "C" NOT NULL REFERENCES master_keys (id)
);
CREATE INDEX store_items_of_partition ON store_items (store, partition_hash, id, length);
CREATE UNIQUE INDEX store_items_by_key ON store_items (store, partition_hash, key_hash) WHERE key_hash IS NOT NULL;
CREATE INDEX store_items_of_agent ON store_items (store, agent, id);
CREATE INDEX store_items_of_document ON store_items (document) WHERE document IS NOT NULL;
CREATE INDEX store_items_by_end ON store_items (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX store_items_under_key ON store_items (master_key, id);

-- Which items have which words, by numbers that follow from the word, the partition and the key of the store.
CREATE TABLE store_words (
    word BIGINT NOT NULL,
    item TEXT COLLATE "C" NOT NULL,
    occurrences BIGINT NOT NULL,
    length BIGINT NOT NULL,
    PRIMARY KEY (word, item)
);
CREATE INDEX store_words_of_item ON store_words (item);
