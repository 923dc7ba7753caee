/** Sentences at the start, by the language of the model. */

const EXAMPLES = {
  en: {
    a: "He sat on the bank of the river and fished.",
    b: "She put her savings into the bank in town.",
    where: "bank",
    neighbours: "She left the house before dawn.",
    neighbourWord: "left",
    reading: "The old man sat down by the fire and ate a bicycle.",
    tasks: {
      text: ["Angela Merkel flew to Paris on Monday to meet the president of France."],
      classify: ["A warm, funny film with a wonderful cast."],
      marked: ["The <e1>fire</e1> was caused by a <e2>spark</e2>."],
      qa: [
        "Who wrote the novel?",
        "The novel appeared in 1813. Jane Austen wrote it at home in Chawton.",
      ],
      nli: ["A man is playing a guitar on stage.", "Someone makes music."],
      similarity: ["A man is playing a guitar.", "Someone plays an instrument."],
      coref: ["Anna met Tom at the station. She gave him a book, and he thanked her."],
    },
  },
  zh: {
    a: "她从篮子里拿出一个又红又甜的苹果。",
    b: "苹果昨天发布了新款手机和电脑。",
    where: "苹果",
    neighbours: "这种元素的原子量比氧大。",
    neighbourWord: "元素",
    reading: "老人坐在火炉边，吃了一辆自行车。",
    tasks: {
      text: ["王小明星期一从北京飞往巴黎，会见法国总统。"],
      classify: ["这部电影温暖又有趣，演员都很出色。"],
      marked: ["<e1>大火</e1>是由一个<e2>烟头</e2>引起的。"],
      qa: ["这部小说是谁写的？", "这部小说出版于1813年，是简·奥斯汀在家里写的。"],
      nli: ["一个男人在台上弹吉他。", "有人在演奏音乐。"],
      similarity: ["一个男人在弹吉他。", "有人在演奏乐器。"],
      coref: ["小红在车站遇见了小明。她给了他一本书，他向她道谢。"],
    },
  },
};

/** The examples for a model; English where there are none in its language. */
export function examplesFor(model) {
  return EXAMPLES[(model?.language ?? "en").slice(0, 2)] ?? EXAMPLES.en;
}
