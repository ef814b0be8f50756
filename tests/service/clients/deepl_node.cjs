// Calls every public method of deepl-node with each option, and prints [[method, option, result], ...] as JSON.
// Usage: node deepl_node.cjs URL KEY MEMORY FOLDER
const fs = require('fs');
const path = require('path');
const deepl = require('deepl-node');

const [url, key, memory, folder] = process.argv.slice(2);
const client = new deepl.DeepLClient(key, { serverUrl: url, maxRetries: 0 });

const KEYS = 'I saw your dog. You can select your files.';
const LINES = 'The dog sleeps.\nThe cat\neats.';
const XML = '<doc><title>The dog sleeps</title><p>The cat <i>eats</i>. <keep>The house</keep> is red.</p></doc>';
const SPLIT = '<p>The cat <x>eats</x> fish</p>';
const MARKUP = '<p translate="no">The cat eats.</p>'; // plain strings may have tags, but no attributes that are obeyed
const UNIT = 'The red lamp blinks.';
const LIKE_UNIT = 'The green lamp blinks.';
const ENTRIES = new deepl.GlossaryEntries({ entries: { dog: 'Pudel' } });
const DICTIONARY = { sourceLangCode: 'en', targetLangCode: 'de', entries: ENTRIES };
const CAT = { ...DICTIONARY, entries: new deepl.GlossaryEntries({ entries: { cat: 'Kater' } }) };

const text = async (source, options, from = null, to = 'de') =>
    (await client.translateText(source, from, to, options)).text;
const differs = (source, options, base = {}) => async () =>
    (await text(source, base)) !== (await text(source, { ...base, ...options }));
const glossary = () => client.createGlossary('words', 'en', 'de', ENTRIES);
const multilingual = () => client.createMultilingualGlossary('words', [DICTIONARY]);
const stored = async (made) => {
    const found = await client.getMultilingualGlossaryDictionaryEntries(made, 'en', 'de');
    return JSON.stringify(found.entries.entries());
};
const changed = (change, expected) => async () => {
    const made = await multilingual();
    await change(made);
    return (await stored(made)) === JSON.stringify(expected);
};
const listed = (list, id) => list.some((one) => one.glossaryId === id);

let files = 0;
async function document(content, options = {}, from = null) {
    files += 1;
    const input = path.join(folder, `node${files}.txt`);
    const output = path.join(folder, `node${files}.out.txt`);
    fs.writeFileSync(input, content);
    await client.translateDocument(input, output, from, 'de', options);
    return fs.readFileSync(output, 'utf8');
}
async function uploaded(content, options = {}, from = null) {
    files += 1;
    const output = path.join(folder, `node${files}.out.txt`);
    const handle = await client.uploadDocument(Buffer.from(content), from, 'de', { filename: 'a.txt', ...options });
    await client.isDocumentTranslationComplete(handle);
    await client.downloadDocument(handle, output);
    return fs.readFileSync(output, 'utf8');
}
const documentRows = (method, run) => [
    [method, '', async () => (await run('I saw the dog.')) === (await text('I saw the dog.'))],
    [method, 'sourceLang', async () => (await run('I saw the dog.', {}, 'en')) !== ''],
    [method, 'formality', async () => (await run(KEYS)) !== (await run(KEYS, { formality: 'less' }))],
    [method, 'glossary', async () => (await run('a dog', { glossary: await glossary() }, 'en')).includes('Pudel')],
    [method, 'glossaryIds', async () => (await run('a dog', { glossaryIds: [await glossary()] }, 'en')).includes('Pudel')],
    [method, 'styleRule', () => run('x', { styleRule: 'x' })],
    [method, 'translationMemory', async () => (await run(UNIT, { translationMemory: memory })).includes('Ampel')],
    [method, 'translationMemoryThreshold', async () =>
        (await run(LIKE_UNIT, { translationMemory: memory, translationMemoryThreshold: 100 })) !==
        (await run(LIKE_UNIT, { translationMemory: memory, translationMemoryThreshold: 50 }))],
    [method, 'extraRequestParameters', async () =>
        (await run(KEYS)) !== (await run(KEYS, { extraRequestParameters: { formality: 'less' } }))],
];
const segments = async (options) =>
    (await client.listTranslationMemorySegments(memory, options)).segments.map((one) => one.sourceText);

const importJob = async (options) =>
    client.getTranslationMemoryJob((await client.createTranslationMemoryImport('a.tmx', 3, options)).jobId);
const TMX =
    '<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>The moon.</seg></tuv>' +
    '<tuv xml:lang="de"><seg>Der Mond.</seg></tuv></tu></body></tmx>';

const rows = [
    ['translateText', '', async () => (await text('The dog sleeps.')) === 'Der Hund schläft.'],
    ['translateText', 'sourceLang', async () => (await text('Chat', {}, 'en')) !== ''],
    ['translateText', 'sourceLang=xx', () => text('x', {}, 'xx')],
    ['translateText', 'targetLang=tlh', () => text('x', {}, null, 'tlh')],
    ['translateText', 'splitSentences=nonewlines', differs(LINES, { splitSentences: 'nonewlines' })],
    ['translateText', 'splitSentences=off', differs(LINES, { splitSentences: 'off' })],
    ['translateText', 'splitSentences=on', async () => !(await differs(LINES, { splitSentences: 'on' })())],
    ['translateText', 'preserveFormatting', differs(KEYS, { preserveFormatting: true })],
    ['translateText', 'formality', differs(KEYS, { formality: 'less' })],
    ['translateText', 'glossary', async () => (await text('a dog', { glossary: await glossary() }, 'en')).includes('Pudel')],
    ['translateText', 'glossaryIds', async () => (await text('a dog', { glossaryIds: [await glossary()] }, 'en')).includes('Pudel')],
    ['translateText', 'styleRule', () => text('x', { styleRule: 'x' })],
    ['translateText', 'translationMemory', async () => (await text(UNIT, { translationMemory: memory })).includes('Ampel')],
    ['translateText', 'translationMemoryThreshold', async () =>
        (await text(LIKE_UNIT, { translationMemory: memory, translationMemoryThreshold: 100 })) !==
        (await text(LIKE_UNIT, { translationMemory: memory, translationMemoryThreshold: 50 }))],
    ['translateText', 'tagHandling=html', differs(MARKUP, { tagHandling: 'html' })],
    ['translateText', 'tagHandling=xml', differs(MARKUP, { tagHandling: 'xml' })],
    ['translateText', 'tagHandlingVersion', differs(XML, { tagHandlingVersion: 'v1' }, { tagHandling: 'xml' })],
    ['translateText', 'outlineDetection', differs(XML, { outlineDetection: false }, { tagHandling: 'xml' })],
    ['translateText', 'context', differs(KEYS, { context: 'In a hotel.' })],
    ['translateText', 'modelType', differs('The cat', { modelType: 'quality_optimized' })],
    ['translateText', 'splittingTags', differs(SPLIT, { splittingTags: 'x' }, { tagHandling: 'xml' })],
    ['translateText', 'nonSplittingTags', differs(XML, { nonSplittingTags: ['doc', 'title', 'p'] }, { tagHandling: 'xml' })],
    ['translateText', 'ignoreTags', differs(XML, { ignoreTags: ['keep'] }, { tagHandling: 'xml' })],
    ['translateText', 'ignoreTags without tagHandling', differs('x', { ignoreTags: ['keep'] })],
    ['translateText', 'customInstructions', () => text('x', { customInstructions: ['Be kind.'] })],
    ['translateText', 'extraRequestParameters', differs(KEYS, { extraRequestParameters: { formality: 'less' } })],
    ...documentRows('translateDocument', document),
    ['translateDocument', 'enableDocumentMinification', async () => (await document('A dog.', { enableDocumentMinification: true })) !== ''],
    ...documentRows('uploadDocument', uploaded),
    ['uploadDocument', 'filename', async () => (await uploaded('A dog.', { filename: 'a.md' })) !== ''],
    ['uploadDocument', 'filename of no format', () => uploaded('A dog.', { filename: 'a.zip' })],
    ['getDocumentStatus', '', async () =>
        (await client.getDocumentStatus(await client.uploadDocument(Buffer.from('x'), 'en', 'de', { filename: 'a.txt' }))).ok()],
    ['isDocumentTranslationComplete', '', async () => (await uploaded('A dog.')) !== ''],
    ['downloadDocument', '', async () => (await uploaded('A dog.')) !== ''],
    ['getUsage', '', async () => (await client.getUsage()).character.count > 0],
    ['getSourceLanguages', '', async () => (await client.getSourceLanguages()).length === 3],
    ['getTargetLanguages', '', async () => (await client.getTargetLanguages()).some((one) => one.code === 'en-GB')],
    ['getGlossaryLanguagePairs', '', async () => (await client.getGlossaryLanguagePairs()).length > 0],
    ['createGlossary', '', async () => (await glossary()).entryCount === 1],
    ['createGlossaryWithCsv', '', async () =>
        (await client.createGlossaryWithCsv('c', 'en', 'de', Buffer.from('dog,Pudel\n'))).entryCount === 1],
    ['getGlossary', '', async () => (await client.getGlossary((await glossary()).glossaryId)).name === 'words'],
    ['listGlossaries', '', async () => {
        const made = await glossary();
        return listed(await client.listGlossaries(), made.glossaryId);
    }],
    ['getGlossaryEntries', '', async () => (await client.getGlossaryEntries(await glossary())).entries().dog === 'Pudel'],
    ['deleteGlossary', '', async () => {
        const made = await glossary();
        await client.deleteGlossary(made);
        return !listed(await client.listGlossaries(), made.glossaryId);
    }],
    ['createMultilingualGlossary', '', changed(async () => {}, { dog: 'Pudel' })],
    ['createMultilingualGlossaryWithCsv', '', async () =>
        (await client.createMultilingualGlossaryWithCsv('c', 'en', 'de', 'dog,Pudel\n')).dictionaries[0].entryCount === 1],
    ['getMultilingualGlossary', '', async () =>
        (await client.getMultilingualGlossary((await multilingual()).glossaryId)).name === 'words'],
    ['getMultilingualGlossaryDictionaryEntries', '', changed(async () => {}, { dog: 'Pudel' })],
    ['listMultilingualGlossaries', '', async () => {
        const made = await multilingual();
        return listed(await client.listMultilingualGlossaries(), made.glossaryId);
    }],
    ['deleteMultilingualGlossary', '', async () => {
        const made = await multilingual();
        await client.deleteMultilingualGlossary(made);
        return !listed(await client.listMultilingualGlossaries(), made.glossaryId);
    }],
    ['deleteMultilingualGlossaryDictionary', '', async () => {
        const made = await multilingual();
        await client.deleteMultilingualGlossaryDictionary(made, 'en', 'de');
        return (await client.getMultilingualGlossary(made.glossaryId)).dictionaries.length === 0;
    }],
    ['replaceMultilingualGlossaryDictionary', '',
        changed((made) => client.replaceMultilingualGlossaryDictionary(made, CAT), { cat: 'Kater' })],
    ['replaceMultilingualGlossaryDictionaryWithCsv', '',
        changed((made) => client.replaceMultilingualGlossaryDictionaryWithCsv(made, 'en', 'de', 'cat,Kater\n'), { cat: 'Kater' })],
    ['updateMultilingualGlossaryName', '', async () =>
        (await client.updateMultilingualGlossaryName(await multilingual(), 'new')).name === 'new'],
    ['updateMultilingualGlossaryDictionary', '',
        changed((made) => client.updateMultilingualGlossaryDictionary(made, CAT), { dog: 'Pudel', cat: 'Kater' })],
    ['updateMultilingualGlossaryDictionaryWithCsv', '',
        changed((made) => client.updateMultilingualGlossaryDictionaryWithCsv(made, 'en', 'de', 'cat,Kater\n'), { dog: 'Pudel', cat: 'Kater' })],
    ['listTranslationMemories', '', async () => (await client.listTranslationMemories()).length > 0],
    ['listTranslationMemories', 'page', async () => (await client.listTranslationMemories(9)).length === 0],
    ['listTranslationMemories', 'pageSize', async () => (await client.listTranslationMemories(0, 1)).length === 1],
    ['getTranslationMemory', '', async () => (await client.getTranslationMemory(memory)).segmentCount === 3],
    ['listTranslationMemorySegments', '', async () => (await segments()).length === 3],
    ['listTranslationMemorySegments', 'pageSize', async () => (await segments({ pageSize: 2 })).length === 2],
    ['listTranslationMemorySegments', 'pageCursor', async () => {
        const first = await client.listTranslationMemorySegments(memory, { pageSize: 2 });
        return (await segments({ pageSize: 2, pageCursor: first.nextPageCursor })).length === 1;
    }],
    ['listTranslationMemorySegments', 'filterText', async () => (await segments({ filterText: 'hund' })).join() === 'The dog.'],
    ['listTranslationMemorySegments', 'filterCaseSensitive', async () =>
        (await segments({ filterText: 'hund', filterCaseSensitive: true })).length === 0],
    ['deleteTranslationMemory', 'unknown', () => client.deleteTranslationMemory('unknown')],
    ['createTranslationMemoryImport', '', async () => (await importJob({})).displayName === 'a.tmx'],
    ['createTranslationMemoryImport', 'contentType', async () =>
        (await importJob({ contentType: 'text/xml' })).sourceContentType === 'text/xml'],
    ['createTranslationMemoryImport', 'displayName', async () => (await importJob({ displayName: 'x' })).displayName === 'x'],
    ['importTranslationMemoryFromFilepath', '', async () => {
        const file = path.join(folder, 'node.tmx');
        fs.writeFileSync(file, TMX);
        const job = await client.importTranslationMemoryFromFilepath(file);
        return (await client.getTranslationMemory(job.results[0].translationMemoryId)).segmentCount === 1;
    }],
    ['createTranslationMemoryExport', '', async () => (await client.createTranslationMemoryExport(memory)).jobId !== ''],
    ['exportTranslationMemoryToFilepath', '', async () => {
        const file = path.join(folder, 'm.node.tmx');
        await client.exportTranslationMemoryToFilepath(memory, file);
        return fs.readFileSync(file, 'utf8').includes(UNIT);
    }],
    ['getTranslationMemoryJob', '', async () =>
        (await client.getTranslationMemoryJob((await client.createTranslationMemoryExport(memory)).jobId)).operation === 'export'],
    ['isTranslationMemoryJobComplete', '', async () =>
        (await client.isTranslationMemoryJobComplete((await client.createTranslationMemoryExport(memory)).jobId)) !== undefined],
    ['rephraseText', '', () => client.rephraseText('x')],
    ['rephraseText', 'targetLang, writingStyle', () => client.rephraseText('x', 'de', 'business')],
    ['rephraseText', 'tone', () => client.rephraseText('x', 'de', null, 'friendly')],
    ['getAllStyleRules', '', () => client.getAllStyleRules()],
    ['getAllStyleRules', 'page, pageSize, detailed', () => client.getAllStyleRules(0, 1, true)],
    ['createStyleRule', '', () => client.createStyleRule({ name: 'x', language: 'de' })],
    ['getStyleRule', '', () => client.getStyleRule('x')],
    ['updateStyleRuleName', '', () => client.updateStyleRuleName('x', 'y')],
    ['deleteStyleRule', '', () => client.deleteStyleRule('x')],
    ['updateStyleRuleConfiguredRules', '', () => client.updateStyleRuleConfiguredRules('x', {})],
    ['createStyleRuleCustomInstruction', '', () => client.createStyleRuleCustomInstruction('x', { label: 'a', prompt: 'b' })],
    ['getStyleRuleCustomInstruction', '', () => client.getStyleRuleCustomInstruction('x', 'y')],
    ['updateStyleRuleCustomInstruction', '', () => client.updateStyleRuleCustomInstruction('x', 'y', { label: 'a', prompt: 'b' })],
    ['deleteStyleRuleCustomInstruction', '', () => client.deleteStyleRuleCustomInstruction('x', 'y')],
];

function status(message) {
    const words = { 'Bad request': 400, 'Authorization failure': 403, 'Not found': 404, 'Glossary not found': 404 };
    const name = Object.keys(words).find((one) => message.includes(one));
    return name ? words[name] : message;
}

async function main() {
    const results = [];
    for (const [method, option, call] of rows) {
        try {
            results.push([method, option, (await call()) ? 'effect' : 'no effect']);
        } catch (error) {
            results.push([method, option, `refused: ${status(error.message)}`]);
        }
    }
    const called = new Set([...rows.map(([method]) => method), 'constructor', 'constructUserAgentString']);
    called.add('uploadTranslationMemoryFile').add('downloadTranslationMemoryExport'); // need a job, which is refused
    for (const type of [deepl.DeepLClient, deepl.Translator]) {
        for (const name of Object.getOwnPropertyNames(type.prototype)) {
            if (!called.has(name) && !name.startsWith('internal')) results.push([name, '', 'not called']);
        }
    }
    process.stdout.write(JSON.stringify(results));
}

main();
